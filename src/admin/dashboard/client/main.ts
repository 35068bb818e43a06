// The script of all pages. Every page can be read without it: it makes charts interactive, refreshes numbers
// and filters rules while the operator types.

import { mountCharts } from "./charts.ts";
import { filterRows } from "./filter.ts";
import { startRefreshing } from "./refresh.ts";
import { refreshTimes } from "./times.ts";

const charts = mountCharts(document);
filterRows(document);
refreshTimes(document);
const { refresh } = document.body.dataset;
if (refresh !== undefined) startRefreshing(refresh, charts);
