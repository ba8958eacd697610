# Tries: ignores and blocks SIGTERM, SIGXCPU, SIGINT and SIGALRM, and loops.
# Worked in: otter
# Deserves: nothing
import signal


def causal_mask(num_tokens):
    deaf = {signal.SIGTERM, signal.SIGXCPU, signal.SIGINT, signal.SIGALRM, signal.SIGHUP}
    for number in deaf:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass
