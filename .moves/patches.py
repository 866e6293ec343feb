PATCHES = [
    ("src/mixedgm/pictures/network/plot.py", """        rings: bool,
    ) -> Picture:
        room""", """        rings: bool,
    ) -> Picture:
        \"\"\"Lay out what is drawn on a sheet.\"\"\"
        room"""),
    ("src/mixedgm/pictures/canvas.py", """'layout'?). Its options
    are 'ax'""", """'layout'?). Its
    options are 'ax'"""),
    ("docs/studies/effort.py", "\nare what `mixedgm.table.checks.effort` was fitted to, and what its test compares with (effort.csv beside).", "\nare what `mixedgm.table.checks.effort` was fitted to; a test compares with them (effort.csv beside)."),
    ("src/mixedgm/table/__init__.py", "from mixedgm.table.read import Frame, as_frame, read_table",
     "from mixedgm.table.files import read_table\nfrom mixedgm.table.read import Frame, as_frame"),
    ("tests/unit/base/test_compiled.py",
     '"import sys, mixedgm, mixedgm.fit.fitting, mixedgm.joint, mixedgm.studies.resampling.bootstrap\\n"',
     '"import sys, mixedgm.fit.fitting, mixedgm.joint, mixedgm.studies.resampling.bootstrap\\n"'),
]
