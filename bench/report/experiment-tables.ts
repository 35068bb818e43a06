import type { AddedCpu } from "../experiments/added-cpu.ts";
import { ISOLATES, ISOLATES_LIMIT, type IsolatesResult } from "../experiments/isolates.ts";
import type { Spread } from "../experiments/paired-rounds.ts";
import { figure, table } from "./format.ts";

export function isolatesTable(results: readonly IsolatesResult[]): string {
  const head = ["", "runs", "fewest admitted", "most admitted", "over", "failed"];
  const rows = results.map(({ subject, admitted, failed }) => {
    const over = admitted.reduce((sum, count) => sum + Math.max(0, count - ISOLATES_LIMIT), 0);
    const extremes = [Math.min(...admitted), Math.max(...admitted)];
    const counts = [admitted.length, ...extremes, over, failed];
    return [subject.title, ...counts.map((count) => figure(count, 0))];
  });
  const title = `### one key on ${ISOLATES} isolates, limit ${figure(ISOLATES_LIMIT, 0)}, five times the limit offered`;
  return [title, table(head, rows)].join("\n\n");
}

export function addedCpuTable(cpu: AddedCpu): string {
  const row = (title: string, { median, least, most }: Spread) => [
    title,
    ...[median, least, most].map((value) => figure(value, 1)),
  ];
  const rows = [
    row("forward only", cpu.forward),
    row("forward and add two fixed fields", cpu.fields),
    row("Weir, decided from memory", cpu.weir),
    row("Weir minus forward only", cpu.overForward),
    row("Weir minus forward and two fixed fields", cpu.overFields),
  ];
  const setup = `${cpu.rounds.length} rounds. In each, the Workers take turns and each gets ${figure(cpu.requests, 0)} requests of one client.`;
  const calls = `REST calls for each request to Weir: ${figure(cpu.restCallsPerRequest, 4)}.`;
  const head = ["", "median", "least", "most"];
  return ["### CPU time of a request, µs", setup, table(head, rows), calls].join("\n\n");
}
