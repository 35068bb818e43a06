import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Results, summaryOf } from "./results.ts";

/** Writes all figures of all rounds, and creates the folder if it does not exist. */
export async function writeJson(file: string, results: Results): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(toJson(results), undefined, 2)}\n`);
}

/**
 * The JSON has no lists of plain values: Biome wants such a list on one line, and `JSON.stringify` breaks it into
 * several, so `npm run check` would fail.
 */
export function toJson(results: Results): object {
  const { date, machine, versions, options, addedCpu } = results;
  return {
    date,
    machine,
    versions,
    options: {
      ...options,
      redisLatenciesMs: options.redisLatenciesMs.join(","),
      connections: options.connections.join(","),
    },
    workloads: results.workloads.map((result) => ({
      workload: result.workload.name,
      title: result.workload.title,
      limit: result.workload.limit,
      redisLatencyMs: result.redisLatencyMs,
      connections: result.connections,
      requests: result.requests,
      subjects: result.subjects.map(({ subject, rounds }) => ({
        subject: subject.name,
        title: subject.title,
        median: summaryOf(result, subject.name),
        rounds,
      })),
    })),
    isolates: results.isolates.map(({ subject, admitted, failed }) => ({
      subject: subject.name,
      fewest: Math.min(...admitted),
      most: Math.max(...admitted),
      failed,
      runs: admitted.map((count) => ({ admitted: count })),
    })),
    cpu: { added: addedCpu },
  };
}
