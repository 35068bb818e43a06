import { availableParallelism, cpus } from "node:os";
import type { Inspector, Tally } from "./inspector.ts";
import { type Quantiles, quantilesOf } from "./latency.ts";
import type { SoakOptions } from "./options.ts";

export type Sample = { atMs: number; residentBytes: number };

/** The figures of all phases of one name. */
export type PhaseFigures = Quantiles & {
  phase: string;
  requests: number;
  perSecond: number;
  undecided: number;
  late: number;
  statuses: Record<number, number>;
};

export type Report = {
  at: string;
  machine: string;
  options: SoakOptions;
  phases: PhaseFigures[];
  memory: { baselineMiB: number; endMiB: number; growth: number; samplesMiB: number[] } | undefined;
  windowsChecked: number;
  overAdmissions: unknown[];
  violations: { promise: string; count: number; example: string }[];
  logs: Record<string, number>;
  kept: boolean;
};

/** A process may grow by this part after its first minutes. */
const MAX_GROWTH = 0.1;
const BASELINE_MS = 120_000;
/** Samples that make a figure: one alone may be just before or after a collection. */
const SAMPLES = 10;
const MIB = 1024 * 1024;

export function reportOf(
  options: SoakOptions,
  inspector: Inspector,
  samples: readonly Sample[],
  logs: ReadonlyMap<string, number>,
): Report {
  const memory = memoryOf(samples);
  if (memory && memory.growth > MAX_GROWTH) {
    const said = `${memory.baselineMiB.toFixed(0)} MiB, then ${memory.endMiB.toFixed(0)} MiB`;
    inspector.violate("memory stays within 10 % of minute two", said);
  }
  const { excesses, windows } = inspector.ledger;
  for (const excess of excesses) inspector.violate("no request too many", JSON.stringify(excess));
  const violations = [...inspector.violations].map(([promise, rest]) => ({ promise, ...rest }));
  return {
    at: new Date().toISOString(),
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? "?"}, Node ${process.versions.node}`,
    options,
    phases: [...inspector.tallies].map(([phase, tally]) => figuresOf(phase, tally)),
    memory,
    windowsChecked: windows,
    overAdmissions: excesses.slice(0, 20),
    violations,
    logs: Object.fromEntries(logs),
    kept: violations.length === 0,
  };
}

function figuresOf(phase: string, tally: Tally): PhaseFigures {
  const { requests, statuses, undecided, late, latency, ms } = tally;
  const perSecond = (requests / ms) * 1000;
  return { phase, requests, perSecond, undecided, late, statuses, ...quantilesOf(latency) };
}

/** Against minute two; in a short run, against its middle. */
function memoryOf(samples: readonly Sample[]): Report["memory"] {
  const last = samples.at(-1);
  if (!last) return undefined;
  const baselineAt = Math.min(BASELINE_MS, last.atMs / 2);
  const baseline = medianMiB(samples.filter(({ atMs }) => atMs >= baselineAt).slice(0, SAMPLES));
  const end = medianMiB(samples.slice(-SAMPLES));
  const samplesMiB = samples
    .filter((_, index) => index % SAMPLES === 0)
    .map(({ residentBytes }) => Math.round(residentBytes / MIB));
  return { baselineMiB: baseline, endMiB: end, growth: end / baseline - 1, samplesMiB };
}

function medianMiB(samples: readonly Sample[]): number {
  const sorted = samples.map(({ residentBytes }) => residentBytes).sort((a, b) => a - b);
  return (sorted[Math.floor(sorted.length / 2)] as number) / MIB;
}

/** The report as text, for a terminal. */
export function textOf({ phases, memory, windowsChecked, violations, logs }: Report): string {
  const rows = phases.map(
    ({ phase, requests, perSecond, p50, p99, p999, max, undecided, late, statuses }) => [
      phase,
      `${requests}`,
      perSecond.toFixed(0),
      ...[p50, p99, p999, max].map((ms) => ms.toFixed(1)),
      `${undecided}`,
      `${late}`,
      Object.entries(statuses)
        .map(([status, count]) => `${status}: ${count}`)
        .join(", "),
    ],
  );
  const head = [
    "phase",
    "requests",
    "a second",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "undecided",
    "timeout",
    "statuses",
  ];
  const lines = [
    ...columns([head, ...rows]),
    "",
    memory
      ? `Memory of workerd: ${memory.baselineMiB.toFixed(0)} MiB, at the end ${memory.endMiB.toFixed(0)} MiB (${(memory.growth * 100).toFixed(1)} %). Over time: ${memory.samplesMiB.join(", ")}.`
      : "Memory of workerd: not known here, for there is no /proc.",
    `Windows of clients checked for requests too many: ${windowsChecked}.`,
    "Logged:",
    ...Object.entries(logs).map(([line, count]) => `  ${count} × ${line}`),
    "",
    ...(violations.length === 0 ? ["All promises were kept."] : ["Broken promises:"]),
    ...violations.map(
      ({ promise, count, example }) => `  ${promise}: ${count} times, as in: ${example}`,
    ),
  ];
  return lines.join("\n");
}

function columns(rows: readonly string[][]): string[] {
  const widths =
    rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, at) =>
        at === 0 || at === row.length - 1
          ? cell.padEnd(widths[at] ?? 0)
          : cell.padStart(widths[at] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}
