// The script of all pages. Every page can be read without it: it makes charts interactive, refreshes numbers
// and filters rules while the operator types.

import { chartsIn, createCharts } from "./charts.ts";
import { filterRows } from "./filter.ts";
import { startRefreshing } from "./refresh.ts";
import { refreshTimes } from "./times.ts";

const charts = createCharts();
for (const figure of chartsIn(document)) charts.mount(figure);
filterRows(document);
refreshTimes(document);
const { refresh } = document.body.dataset;
if (refresh !== undefined) startRefreshing(refresh, charts);
