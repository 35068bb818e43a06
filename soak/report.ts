import { availableParallelism, cpus } from "node:os";
import { median } from "../bench/experiments/median.ts";
import { percentileMs } from "../bench/load/latency.ts";
import type { Inspector, PhaseTotals } from "./inspector.ts";
import type { Excess } from "./ledger.ts";
import type { SoakOptions } from "./options.ts";

/** One measurement of the memory of workerd. */
export interface MemorySample {
  /** The time since the start of the run, in milliseconds. */
  readonly atMs: number;
  readonly residentBytes: number;
}

/** The results of all phases that have the same name. Latencies are in milliseconds. */
export interface PhaseResult {
  readonly phase: string;
  readonly requests: number;
  readonly perSecond: number;
  /** The number of requests that Weir admitted although the store did not decide them. */
  readonly undecided: number;
  /** The number of answers that took longer than `timeoutMs` plus `marginMs`. */
  readonly late: number;
  readonly statuses: Readonly<Record<number, number>>;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface MemoryResult {
  readonly baselineMiB: number;
  readonly endMiB: number;
  /** The growth from the baseline to the end of the run, as a share of the baseline. */
  readonly growth: number;
  readonly samplesMiB: readonly number[];
}

/** The results of a run. */
export interface Report {
  readonly at: string;
  readonly machine: string;
  readonly options: SoakOptions;
  readonly phases: readonly PhaseResult[];
  /** Undefined if the system does not report the memory of a process. */
  readonly memory: MemoryResult | undefined;
  readonly windowsChecked: number;
  /** The first {@link MAX_EXCESSES} windows that admitted more than their limit. */
  readonly overAdmissions: readonly Excess[];
  readonly violations: readonly {
    readonly promise: string;
    readonly count: number;
    readonly example: string;
  }[];
  readonly logs: Readonly<Record<string, number>>;
  /** Whether Weir kept all promises. */
  readonly kept: boolean;
}

/** The maximum growth of the process's memory, as a share of the baseline. */
const MAX_GROWTH = 0.1;
/** The baseline is measured two minutes after the start, when the process has stopped growing. */
const BASELINE_MS = 120_000;
/**
 * A memory figure is the median of this many samples, because a single sample would depend on
 * whether a garbage collection has just run.
 */
const SAMPLES = 10;
const MAX_EXCESSES = 20;
const MIB = 1024 * 1024;

export function reportOf(
  options: SoakOptions,
  inspector: Inspector,
  samples: readonly MemorySample[],
  logs: ReadonlyMap<string, number>,
): Report {
  const memory = memoryOf(samples);
  if (memory && memory.growth > MAX_GROWTH) {
    const example = `${memory.baselineMiB.toFixed(0)} MiB, then ${memory.endMiB.toFixed(0)} MiB`;
    inspector.reportViolation("memory grows by at most 10 % after the first two minutes", example);
  }
  const { excesses, windows } = inspector.ledger;
  for (const excess of excesses) {
    inspector.reportViolation("no window admits more than its limit", JSON.stringify(excess));
  }
  const violations = [...inspector.violations].map(([promise, rest]) => ({ promise, ...rest }));
  return {
    at: new Date().toISOString(),
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? "?"}, Node ${process.versions.node}`,
    options,
    phases: [...inspector.totals].map(([phase, totals]) => phaseResultOf(phase, totals)),
    memory,
    windowsChecked: windows,
    overAdmissions: excesses.slice(0, MAX_EXCESSES),
    violations,
    logs: Object.fromEntries(logs),
    kept: violations.length === 0,
  };
}

function phaseResultOf(phase: string, totals: PhaseTotals): PhaseResult {
  const { requests, statuses, undecided, late, latency, durationMs } = totals;
  return {
    phase,
    requests,
    perSecond: (requests / durationMs) * 1000,
    undecided,
    late,
    statuses,
    p50: percentileMs(latency, 50),
    p99: percentileMs(latency, 99),
    p999: percentileMs(latency, 99.9),
    max: percentileMs(latency, 100),
  };
}

/**
 * Compares the memory at the end with the memory after two minutes. In a run shorter than four minutes, the first
 * figure is from the middle of the run.
 */
function memoryOf(samples: readonly MemorySample[]): MemoryResult | undefined {
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

function medianMiB(samples: readonly MemorySample[]): number {
  return median(samples.map(({ residentBytes }) => residentBytes)) / MIB;
}

/** Formats the report for a terminal. */
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
    "per second",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "undecided",
    "late",
    "statuses",
  ];
  const lines = [
    ...columns([head, ...rows]),
    "",
    memory
      ? `Memory of workerd: baseline ${memory.baselineMiB.toFixed(0)} MiB, at the end ${memory.endMiB.toFixed(0)} MiB (${(memory.growth * 100).toFixed(1)} %). Over time: ${memory.samplesMiB.join(", ")}.`
      : "Memory of workerd: unknown, because this system has no /proc.",
    `Compared the admitted requests of ${windowsChecked} windows of clients with their limits.`,
    "Log lines:",
    ...Object.entries(logs).map(([line, count]) => `  ${count} × ${line}`),
    "",
    ...(violations.length === 0 ? ["Weir kept all promises."] : ["Broken promises:"]),
    ...violations.map(
      ({ promise, count, example }) =>
        `  ${promise}: broken ${count} times, for example ${example}`,
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
