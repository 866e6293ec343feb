import sys,subprocess
sys.argv=['x','.']; sys.path.insert(0,'/work/house')
import graph, importlib
bad=0
for m in graph.mods:
    if m.endswith('__main__'): continue
    for k in [k for k in sys.modules if k.startswith('mixedgm')]: del sys.modules[k]
    try: importlib.import_module(m)
    except Exception as e: print(m, type(e).__name__, str(e)[:150]); bad+=1
print(len(graph.mods), bad)
