"""What the comparisons with NumPyro, PyMC and Bambi share: options, resumption, page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coreset_mcmc_benchmarks.interop.comparison import QUICK, Effort, Job, interop_table, page_lines
from coreset_mcmc_benchmarks.options import check_names, quick_parser

Measure = Callable[[Effort], Mapping[str, Any]]


def compare_all(
    name: str,
    words: str | None,
    models: Mapping[str, Measure],
    introduction: str,
    quick_models: Sequence[str],
    arguments: Sequence[str] | None,
) -> int:
    """Measure the models that have no row yet, and write the page after each of them."""
    parser = quick_parser(name, words)
    parser.add_argument("--rows", type=int, default=Effort().rows)
    parser.add_argument("--coreset-size", type=int, default=Effort().coreset_size)
    parser.add_argument(
        "--draws", type=int, default=Effort().draws, help="of each chain of NUTS; ours are twice as many"
    )
    parser.add_argument("--models", nargs="*", default=[], help="only these")
    parser.add_argument("--out", type=Path, default=Path("interop"), help="folder of the table and the page")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--models", options.models, list(models))
    effort = QUICK if options.quick else Effort(options.rows, options.coreset_size, options.draws)
    names = options.models or (quick_models if options.quick else models)
    table, page = interop_table(options.out / f"interop_{name}.csv"), options.out / f"interop_{name}.md"
    for job in [] if options.table else table.missing(Job(model, effort) for model in names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            row = job.row(models[job.model](effort))
        table.append(row)
        print(job.model, {key: value for key, value in row.items() if key not in job.effort._fields}, flush=True)
    page.write_text("\n".join([introduction, *page_lines(table.rows()), ""]))
    return 0
