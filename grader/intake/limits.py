"""What reading one submission may cost, as data. Always used as ``limits.NAME``.

Together they bound the memory that reading takes, whatever is handed in, to less than 350 MB: the
text that is kept (`MAX_TOTAL`, four times that as text of mixed scripts), one file on its way
(`MAX_FILE`; the JSON of a notebook that is all brackets takes fifty times that while it is
parsed), and an archive's table of contents (`MAX_DIRECTORY`, sixteen times that once it is a list
of entries). An honest submission takes a few.
"""

MAX_FILE = 4 * 2**20  # bytes of one file
MAX_FILES = 500
MAX_TOTAL = 16 * 2**20  # bytes of all files
MAX_PROBLEMS = 20  # lines; an archive can hold thousands of bad entries
MAX_NAME = 200  # characters of a name that is shown, or is a student's key

# A virtual environment with PyTorch has 28,000 entries in 4 MB of table. One that was zipped along
# must cost nobody a grade.
MAX_DIRECTORY = 5 * 2**20  # bytes of an archive's table of contents
# Of a whole class, some of whom did just that; and a student's archive inside it.
MAX_DOWNLOAD_DIRECTORY = 16 * MAX_DIRECTORY
MAX_ARCHIVE = 64 * 2**20
MAX_PATH = 1_000  # characters of an entry's name, folders included

# A notebook that prints zeros shrinks to a 200th, and deflate ends at a 1,032nd. Above that size
# and ratio a file was made to be large.
MAX_RATIO = 500
RATIO_FROM = 2**20  # bytes
