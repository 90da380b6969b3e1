#include "report/html_parts.h"

namespace lbf::report::html {

std::string_view style() {
  // Colors: Okabe and Ito's, which stay apart for eyes that do not see red or green; shapes differ as well.
  return R"css(
:root{color-scheme:light dark;--bg:#fcfcfa;--card:#fff;--ink:#1c2024;--soft:#5b6470;--line:#dde1e6;--accent:#0a5ea8;
--n0:#0067a8;--n1:#c04a00;--n2:#00795a;--n3:#a3477d;--n4:#75610a;--n5:#4a5bbd;--n6:#8c2f39;--n7:#4d5b66;
--m1:#e3edf6;--m2:#c6dcee;--m3:#9fc5e2;--m4:#6fa8d2;--m5:#4289bf;--m6:#1f69a3;--m7:#0d4a7d;--m8:#062e52;
--computing:#0067a8;--mpi:#f0dfb8;--blocked:#6f6f78;--note:#fff6df;--noteline:#e0b84c}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2127;--ink:#e8eaed;--soft:#a3acb8;--line:#353c45;--accent:#7fc1ff;
--n0:#62b6f0;--n1:#f09a4e;--n2:#3ccfa2;--n3:#e79ac6;--n4:#e3d05a;--n5:#a6b1ff;--n6:#f08e98;--n7:#b4c0cb;
--m1:#263d52;--m2:#26455f;--m3:#244d70;--m4:#2a6490;--m5:#3a80b2;--m6:#5b9fd0;--m7:#8dc2e8;--m8:#d3ebff;
--computing:#4aa3e0;--mpi:#574a2b;--blocked:#9a9aa4;--note:#2e2917;--noteline:#a3832f}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:66rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;line-height:1.3;margin:0 0 .5rem}
p{margin:0 0 .75rem;max-width:44rem}
.sub{max-width:none;color:var(--soft);margin-bottom:1.25rem;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem;margin:0 0 1rem}
.advice{border-left:4px solid var(--accent)}
pre{margin:.25rem 0 .75rem;padding:.6rem .75rem;background:var(--bg);border:1px solid var(--line);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;font:.9rem/1.45 ui-monospace,"DejaVu Sans Mono",monospace}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem 1.25rem;margin:0}
dl.facts dt{color:var(--soft);font-size:.82rem}
dl.facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
figure{margin:0}
figcaption{color:var(--soft);font-size:.9rem;margin-bottom:.5rem;max-width:44rem}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,"DejaVu Sans",sans-serif;fill:var(--soft)}
svg text.strong{fill:var(--ink);font-weight:600}
.desk{display:none}
@media(min-width:40rem){.desk{display:block}.phone{display:none}.pair{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem;align-items:end}}
.grid{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.hit{fill:transparent}
.ring{fill:none;stroke:var(--ink);stroke-width:1.5}
.front{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-dasharray:4 3}
.nodeline{stroke:var(--ink);stroke-width:.6;stroke-opacity:.55}
.frame{fill:none;stroke:var(--line)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;padding:0;margin:.6rem 0 0;font-size:.9rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.legend svg{width:16px;height:16px;flex:none}
.scale{display:flex;align-items:center;flex-wrap:wrap;gap:.15rem .5rem;font-size:.82rem;color:var(--soft);margin-top:.5rem}
.scale svg{width:160px;flex:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:right;padding:.3rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
td.text,th.text{text-align:left}
thead th{color:var(--soft);font-weight:600}
tr.self td{font-weight:600}
details{margin-top:.75rem}
summary{cursor:pointer;color:var(--accent)}
.missing{background:var(--note);border:1px solid var(--noteline);border-radius:6px;padding:.6rem .75rem;margin:0}
.rows{display:grid;grid-template-columns:auto 1fr;gap:0 .5rem;font-size:.78rem;color:var(--soft)}
.rows svg{border:1px solid var(--line)}
.ends{display:flex;flex-direction:column;justify-content:space-between;text-align:right;white-space:nowrap}
.time{grid-column:2;display:flex;justify-content:space-between}
h3{font-size:.95rem;margin:1rem 0 .25rem}
footer{color:var(--soft);font-size:.85rem}
a{color:var(--accent)}
)css";
}

}  // namespace lbf::report::html
