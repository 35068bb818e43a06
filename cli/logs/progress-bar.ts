import cliProgress from "cli-progress";
import { count, duration } from "../admin/text.ts";
import type { LogProgress } from "./log-progress.ts";

/** A bar on a terminal that shows how far logs have been read. */
export interface ProgressBar {
  /** Shows the current progress. Redraws at most five times a second, so it may be called often. */
  update(): void;
  /** Removes the bar. Call it before anything else is printed, also after an error. */
  stop(): void;
}

export interface ProgressBarOptions {
  /** Show nothing. */
  readonly quiet?: boolean | undefined;
  /** @default standard error, so that standard output has only the report */
  readonly stream?: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** The kind of terminal; on "dumb" ones, the bar shows nothing. @default the variable TERM */
  readonly term?: string | undefined;
  /** Returns the time in milliseconds. */
  readonly now?: () => number;
}

const NONE: ProgressBar = { update() {}, stop() {} };

/** Starts a bar with the rate and the time left. On a stream that is no terminal, it shows nothing. */
export function startProgressBar(
  progress: LogProgress,
  {
    quiet,
    stream = process.stderr,
    term = process.env.TERM,
    now = performance.now.bind(performance),
  }: ProgressBarOptions = {},
): ProgressBar {
  if (quiet || !stream.isTTY || term === "dumb") return NONE;
  const begin = now();
  const { bytesTotal } = progress;
  const text = () => ({ text: progressText(progress, now() - begin) });
  const bar = new cliProgress.SingleBar({
    stream,
    format: bytesTotal ? "[{bar}] {percentage} % · {text}" : "{text}",
    barsize: 24,
    fps: 5,
    clearOnComplete: true,
    // Without it, the bar would switch the terminal's line wrapping off, and a signal would leave it off.
    linewrap: true,
  });
  // Without a known size, the total only keeps the bar from being complete.
  bar.start(bytesTotal || Number.MAX_SAFE_INTEGER, 0, text());
  return {
    update: () => bar.update(progress.bytesRead, text()),
    stop: () => bar.stop(),
  };
}

/** Returns such as `1 234 567 lines · 182 000 per second · 12s left`. */
export function progressText(
  { bytesRead, bytesTotal, lines }: Pick<LogProgress, "bytesRead" | "bytesTotal" | "lines">,
  elapsedMs: number,
): string {
  const parts = [`${count(lines)} line${lines === 1 ? "" : "s"}`];
  // The first moments say nothing about the rest.
  if (elapsedMs < 500 || bytesRead === 0) return parts.join("");
  parts.push(`${count(Math.round((lines / elapsedMs) * 1000))} per second`);
  if (bytesTotal && bytesRead < bytesTotal) {
    parts.push(`${duration(elapsedMs * ((bytesTotal - bytesRead) / bytesRead))} left`);
  }
  return parts.join(" · ");
}
