const tables = [...document.querySelectorAll("table")];

// --- sorting: by the text or the numbers of a column; unknown values come last --------------------

{
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const compare = (one, other) => order.compare(one, other);
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number.parseFloat(text.replace("−", "-"));
    return { text, number, unknown: text === "–" };
  };

  const sort = (table, head, descending) => {
    const body = table.tBodies[0];
    const numeric = head.matches(".number, .upright");
    const rows = [...body.rows].map((row) => ({ row, ...value(row, head.cellIndex) }));
    rows.sort((one, other) => {
      if (one.unknown || other.unknown) return one.unknown - other.unknown;
      const by = numeric ? one.number - other.number : compare(one.text, other.text);
      return descending ? -by : by;
    });
    body.append(...rows.map(({ row }) => row));
    for (const other of table.tHead.rows[0].cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };

  for (const table of tables) {
    for (const button of table.querySelectorAll("thead button")) {
      const head = button.closest("th");
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        // The first click sorts numbers from the largest, and names from A.
        const first = head.matches(".number, .upright");
        sort(table, head, now === "none" ? first : now === "ascending");
      });
    }
  }
}

// --- filtering: a row is shown if it contains every word of the filter ----------------------------
//
// The text of a student's row includes the mistakes that the student made. Code is not searched.

{
  const field = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const plain = (text) => text.toLocaleLowerCase();
  // The first two cells: a student's name and status without points, or a mistake and its exercise
  // without the names of students.
  const first = (row) => [...row.cells].slice(0, 2).map((cell) => plain(cell.textContent));
  const mistakes = [...document.querySelectorAll("tr[id^=m]")].map(first);
  const text = (row) => {
    if (row.dataset.mistakes === undefined) {
      const searched = [...row.cells].filter((cell) => cell.dataset.unsearched === undefined);
      return searched.map((cell) => plain(cell.textContent)).join("\n");
    }
    const made = row.dataset.mistakes.split(" ").filter(Boolean);
    return [first(row), ...made.map((place) => mistakes[place])].flat().join("\n");
  };
  const filtered = tables.map((table) => ({
    name: table.dataset.rows,
    rows: [...table.tBodies[0].rows].map((row) => ({ row, text: text(row) })),
  }));

  const filter = () => {
    const words = plain(field.value).split(/\s+/).filter(Boolean);
    const counts = filtered.map(({ name, rows }) => {
      let count = 0;
      for (const { row, text } of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        count += !row.hidden;
      }
      return `${count} of ${rows.length} ${name}`;
    });
    shown.textContent = words.length ? `Shown: ${counts.join(", ")}` : "";
  };
  field.addEventListener("input", filter);
  field.closest("[hidden]").hidden = false;

  // A link to a row that the filter hides empties the filter.
  addEventListener("hashchange", () => {
    const row = document.getElementById(location.hash.slice(1));
    if (!row?.hidden) return;
    field.value = "";
    filter();
    row.scrollIntoView();
  });
}
