"""How the page looks: on paper, on a narrow screen, by day and by night. Only what every browser
brings along: no font and no picture is fetched."""

from typing import Final

from kvlint.drawing.svg import STYLE as LAYOUTS

STYLE: Final = (
    """
:root { color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2126; --quiet: #59626d; --rule: #d9dde2; --faint: #f1f3f5;
  --red: #a4211b; --red-faint: #fbefed; --green: #1a6644; --link: #1b5a92;
  --bar: #47719b; --cell: #dfe7ef; --cell-odd: #eef2f6 }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171b; --ink: #e3e7ec; --quiet: #9ca6b1; --rule: #343b44; --faint: #1d2228;
  --red: #ff8f82; --red-faint: #2b1b1b; --green: #74c99f; --link: #86bdf0;
  --bar: #7fa8d0; --cell: #2b3846; --cell-odd: #212a34 } }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body { margin: 0 auto; padding: 2.5rem 2rem 4rem; max-width: 74rem; background: var(--paper);
  color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial,
  sans-serif; overflow-wrap: anywhere }
code, pre, .timeline, .strip { font-family: ui-monospace, "SF Mono", Menlo, Consolas,
  "DejaVu Sans Mono", monospace }
code { font-size: .92em }
a { color: var(--link) }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
h1 { font-size: 1.55rem; line-height: 1.3; font-weight: 600; margin: .3rem 0 1.4rem;
  max-width: 72rem} h1 span { display: inline-block }
h2 { font-size: 1.2rem; font-weight: 600; margin: 0 0 1rem; padding-top: .7rem;
  border-top: 2px solid var(--ink) }
h3 { font-size: 1.05rem; font-weight: 600; margin: 1.6rem 0 .3rem; line-height: 1.4 }
h4 { font-size: .95rem; font-weight: 600; margin: 1.4rem 0 .4rem }
p { margin: .4rem 0 }
.kind { font-weight: 600; margin: 0 } .kind span { font-weight: 400; color: var(--quiet) }
section { margin-top: 3rem }
.lead, .nature, .more, figcaption, .of { color: var(--quiet) }
.lead, figcaption { max-width: 60rem } figcaption { font-size: .88rem; margin-bottom: .3rem }
figure { margin: 1.2rem 0 }
dl { margin: .8rem 0 } dl > div { display: grid; grid-template-columns: 8.5rem 1fr; gap: 0 1rem;
  padding: .3rem 0; border-top: 1px solid var(--rule) }
dl > div:last-child { border-bottom: 1px solid var(--rule) }
dt { color: var(--quiet) } dd { margin: 0; min-width: 0 }
ul.plain { list-style: none; margin: 0; padding: 0 } ul.plain li + li { margin-top: .2rem }
ol.stack { margin: .2rem 0; padding-left: 2.2rem } ol.stack li:first-child { font-weight: 600 }
ol.stack li::marker { color: var(--quiet) }
nav ul { list-style: none; margin: 1.4rem 0 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .3rem 1.4rem }
.answer { font-weight: 600 } .answer.refuted { color: var(--red) }
.answer.confirmed { color: var(--green) }
ul.index { margin-bottom: 2rem }
.card { border-left: 3px solid var(--red); padding-left: 1.2rem; margin: 0 0 2.6rem }
.card h3 span { font-weight: 400; color: var(--quiet); font-size: .9rem }
.card h3 { margin-top: 0; font-size: 1.2rem }
.why { max-width: 60rem } .message { max-width: 60rem }
.violation { margin: .6rem 0 } article.violation { margin-bottom: 2rem }
.violation:target { background: var(--faint); outline: 6px solid var(--faint) }
details { margin: .5rem 0 } summary { cursor: pointer; color: var(--link) }
details[open] > summary { margin-bottom: .4rem }
.steps code { white-space: pre-wrap }
.card .violation > details > summary { color: var(--ink); font-weight: 600 }
pre { background: var(--faint); padding: .8rem 1rem; overflow-x: auto; margin: .8rem 0 }
.scroll { overflow-x: auto; max-width: 100% }
.scroll svg { display: block; width: 1104px; max-width: none; height: auto }
table { border-collapse: collapse; width: 100%; font-size: .93rem; overflow-wrap: break-word }
caption span { display: block; position: sticky; left: 0; max-width: calc(100vw - 4rem) }
caption { text-align: left; color: var(--quiet); font-size: .88rem; padding: .2rem 0 .4rem }
th, td { text-align: left; vertical-align: top; padding: .4rem 1rem .4rem 0;
  border-top: 1px solid var(--rule); font-weight: 400 }
thead th { color: var(--quiet); border-top: 0; white-space: nowrap }
tbody tr:last-child > * { border-bottom: 1px solid var(--rule) }
.beside td { min-width: 11rem }
.beside tbody th { position: sticky; left: 0; background: var(--paper); color: var(--quiet);
  white-space: nowrap }
.beside td strong { font-variant-numeric: tabular-nums }
.numbers { font-variant-numeric: tabular-nums; white-space: nowrap }
.hypotheses th { width: 50% } .hypotheses .formula { display: block }
.reason caption { position: absolute; clip-path: inset(50%) }
.reason th { min-width: 17rem } .reason td:nth-child(2) { white-space: nowrap }
#not-exercised h3 { font-weight: 400; font-size: 1rem }
.hypotheses .of { font-size: .9em }
footer { margin-top: 4rem; color: var(--quiet); border-top: 1px solid var(--rule) }
.timeline, .strip { font-size: 12px; margin: .6rem 0 }
.timeline text, .strip text { fill: var(--ink) }
.timeline .grid { stroke: var(--rule) } .timeline .lane { font-weight: 600 }
.timeline .count { font-weight: 400; fill: var(--quiet) }
.bar rect { fill: var(--bar) } .bar .made { stroke: var(--bar) }
.bar .notified { stroke: var(--ink); stroke-width: 1.5 }
.bar.failed rect, .column .wrong { fill: var(--red) }
.bar.released rect, .bar.open rect { fill: var(--paper); stroke: var(--bar) }
.bar.open rect { stroke-dasharray: 2 2 }
.column rect { fill: var(--bar) }
.mark path { fill: var(--red) } .mark text { fill: var(--red); font-weight: 600 }
.strip .over, .strip .index { fill: var(--quiet); font-size: 11px }
.strip .bracket, .strip .pointer { fill: none; stroke: var(--quiet) }
.strip .cell { fill: var(--cell) } .strip .odd { fill: var(--cell-odd) }
.strip .beyond { fill: none; stroke: var(--quiet); stroke-dasharray: 3 2 }
.strip .cell.taken { fill: var(--red-faint); stroke: var(--red); stroke-width: 2;
  stroke-dasharray: none }
.strip .cell.meant { fill: var(--paper); stroke: var(--green); stroke-width: 2 }
.strip .pointed.taken text { fill: var(--red); font-weight: 600 }
.strip .pointed.meant text { fill: var(--green); font-weight: 600 }
.strip .taken .pointer { stroke: var(--red) } .strip .meant .pointer { stroke: var(--green) }
@media (max-width: 44rem) { body { padding: 1.4rem 1rem 3rem; font-size: 14.5px }
  h1 { font-size: 1.25rem } dl > div { grid-template-columns: 1fr }
  .card { padding-left: .8rem } .hypotheses th { width: auto } }
@media print { :root { --paper: #fff } body { max-width: none; padding: 0; font-size: 10pt }
  nav { display: none } .scroll { overflow: visible } .scroll svg { width: 100% }
  a { color: inherit } article, figure, tr { break-inside: avoid-page } }
"""
    + LAYOUTS
)
