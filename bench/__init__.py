"""Compares Handrail with the limits of the system and with its peers. Byte code is written, as for every user."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without byte code every start takes several times as long
sys.dont_write_bytecode = False
