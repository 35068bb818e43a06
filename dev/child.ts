import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** How long a child may take to end in order before it is killed, in milliseconds. */
const GRACE_MS = 3000;

/** Why a child process ended: with a code, or by a signal. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null };

/** A child process that ends when it is told to, and at the latest together with this process. */
export type OwnedChild = {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Settles once the process has ended, for whatever reason; never rejects. */
  readonly exited: Promise<Exit>;
  /** Ends the process and everything that it started, and waits until it has ended. */
  stop(): Promise<void>;
};

// Windows has neither process groups nor signals to send to one.
const hasProcessGroups = process.platform !== "win32";
const living = new Set<ChildProcess>();

/**
 * Starts a program, without a shell, in a process group of its own. So a Ctrl-C at the terminal
 * reaches this process alone, which then ends its children in the order that it needs, and one
 * signal to the group also ends the grandchildren that a killed child would leave behind.
 *
 * @throws the error of `spawn`, with code `ENOENT` when there is no such program.
 */
export async function startChild(
  command: string,
  args: readonly string[],
  options: Omit<SpawnOptions, "shell" | "detached"> = {},
): Promise<OwnedChild> {
  endChildrenWithThisProcess();
  const child = spawn(command, args, { ...options, detached: hasProcessGroups });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  // Later than `ended`: by now everything that it printed has been read too.
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => {
      living.delete(child);
      resolve({ code, signal });
    });
  });
  await once(child, "spawn");
  living.add(child);

  async function stop(): Promise<void> {
    // The program itself first: it knows in which order its own children should end.
    child.kill("SIGTERM");
    await Promise.race([ended, delay(GRACE_MS, undefined, { ref: false })]);
    killGroup(child);
    await exited;
  }

  return { process: child, pid: child.pid as number, exited, stop };
}

function killGroup(child: ChildProcess): void {
  if (!hasProcessGroups) {
    child.kill("SIGKILL");
    return;
  }
  try {
    process.kill(-(child.pid as number), "SIGKILL");
  } catch (error) {
    // Nobody of the group is left, which is what was wanted. macOS says EPERM for a moment longer.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

let watching = false;

function endChildrenWithThisProcess(): void {
  if (watching) return;
  watching = true;
  process.on("exit", () => {
    for (const child of living) killGroup(child);
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, function endOnSignal() {
      // A signal's default action ends a process without an `exit` event, and listening to the
      // signal takes that action away. Whoever else listens decides when to exit; with nobody
      // else, the children are ended here and the signal is given its action back.
      if (process.listenerCount(signal) > 1) return;
      for (const child of living) killGroup(child);
      process.off(signal, endOnSignal);
      process.kill(process.pid, signal);
    });
  }
}
