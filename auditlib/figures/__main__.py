"""``python -m auditlib.figures outputs/POOL [NAME ...]``: draw figures again from a saved audit."""

import sys

from auditlib.figures import save_figures
from auditlib.report.again import again
from auditlib.studies import all_figures

if __name__ == "__main__":
    sys.exit(again(sys.argv[1:], "figures", all_figures(), save_figures))
