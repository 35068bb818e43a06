import { BASELINE } from "../environment/subjects.ts";
import { figure, NONE, table } from "./format.ts";
import { summaryOf, type WorkloadResult } from "./results.ts";
import type { Summary } from "./summary.ts";

const HEAD = [
  "",
  "p50 ms",
  "× baseline",
  "added p50",
  "added p95",
  "added p99",
  "requests/s",
  "CPU µs",
  "REST calls",
  "commands",
  "$ per million",
  "over",
  "under",
];

/**
 * Returns a table of all subjects with one workload. CPU time, calls and commands are per request.
 */
export function workloadTable(result: WorkloadResult): string {
  const { workload, redisLatencyMs, connections, requests, subjects } = result;
  const rows: string[][] = [];
  const failures: string[] = [];
  for (const { subject } of subjects) {
    const summary = summaryOf(result, subject.name);
    if (!summary) continue;
    rows.push([subject.title, ...cells(summary, subject.name === BASELINE)]);
    if (summary.failed > 0) failures.push(`${subject.title}: ${summary.failed} requests failed.`);
  }
  const title = `### ${workload.title}`;
  const sent = workload.isBurst ? "at once" : `over ${connections} connections`;
  const setup = `${figure(requests, 0)} requests in each round, ${sent}, Redis ${redisLatencyMs} ms away.`;
  return [title, setup, table(HEAD, rows), ...failures].join("\n\n");
}

function cells(summary: Summary, isBaseline: boolean): string[] {
  const { latency, added, ratio, requestsPerSecond, cpuPerRequest } = summary;
  const { restCallsPerRequest, commandsPerRequest, dollarsPerMillion, over, under } = summary;
  const times = [
    figure(latency.p50, 2),
    figure(ratio, 2),
    figure(added.p50, 2),
    figure(added.p95, 2),
    figure(added.p99, 2),
    figure(requestsPerSecond, 0),
    figure(cpuPerRequest, 0),
  ];
  // The baseline has no limit, so it has no figures for calls, price, and wrong decisions.
  if (isBaseline) return [...times, ...Array.from({ length: 5 }, () => NONE)];
  return [
    ...times,
    figure(restCallsPerRequest, 3),
    figure(commandsPerRequest, 3),
    figure(dollarsPerMillion, 2),
    figure(over, 0),
    figure(under, 0),
  ];
}
