"""``python -m auditlib.figures outputs/POOL [NAME ...]``: draw figures again from a saved audit."""

import sys

from auditlib.figures import FIGURES, save_figures
from auditlib.report.again import again

if __name__ == "__main__":
    sys.exit(again(sys.argv[1:], "figures", FIGURES, save_figures))
