import ast,sys,json
from pathlib import Path
root=Path(sys.argv[1] if len(sys.argv)>1 else '.')/'src/mixedgm'
files=sorted(root.rglob('*.py'))
mods={}
for f in files:
    n='.'.join(f.relative_to(root.parent).with_suffix('').parts)
    if n.endswith('.__init__'): n=n[:-9]
    mods[n]=f
imp={m:set() for m in mods}
for m,f in mods.items():
    t=ast.parse(f.read_text())
    for node in ast.walk(t):
        if isinstance(node,ast.ImportFrom) and node.module and node.module.startswith('mixedgm'):
            for a in node.names:
                full=node.module+'.'+a.name
                if full in mods: imp[m].add(full)
                elif node.module in mods: imp[m].add(node.module)
        elif isinstance(node,ast.Import):
            for a in node.names:
                if a.name in mods: imp[m].add(a.name)
by={m:sorted(x for x in mods if m in imp[x]) for m in mods}
short=lambda s:s.removeprefix('mixedgm.')
if __name__=='__main__':
    for m in mods:
        if mods[m].name=='__init__.py': continue
        print(f"{short(m)} [{len(mods[m].read_text().splitlines())}] <- {len(by[m])}: "+' '.join(short(x) for x in by[m][:12]))
