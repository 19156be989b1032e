"""``python -m tests.conformance`` runs all vectors."""

import sys

from .run import main

sys.exit(main())
