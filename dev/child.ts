import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/**
 * How long a child process may take to end after SIGTERM, in milliseconds. After this time, it is killed.
 */
const GRACE_MS = 3000;

/** How a child process ended: with a code, or by a signal. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A child process. It ends when this process ends, if it has not ended before. */
export interface OwnedChild {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Resolves when the process has ended for any reason. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Ends the process and all processes that it started, and waits until the process has ended. */
  stop(): Promise<void>;
}

// Windows has no process groups and no signals for them.
const hasProcessGroups = process.platform !== "win32";
const living = new Set<ChildProcess>();

/**
 * Starts a program, without a shell, in a process group of its own. So Ctrl-C at the terminal reaches only this
 * process, which can end its children in the right order. A signal to the group also ends the child's own children.
 *
 * @throws the error of `spawn`, with code `ENOENT` if there is no such program
 */
export async function startChild(
  command: string,
  args: readonly string[],
  options: Omit<SpawnOptions, "shell" | "detached"> = {},
): Promise<OwnedChild> {
  endChildrenWithThisProcess();
  const child = spawn(command, args, { ...options, detached: hasProcessGroups });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  // `exited` resolves later than `ended`, because `close` comes after all output has been read.
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => {
      living.delete(child);
      resolve({ code, signal });
    });
  });
  await once(child, "spawn");
  living.add(child);

  async function stop(): Promise<void> {
    // The first signal goes only to the program, which can end its own children in the right order.
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
    // The group has ended already. Shortly after its end, macOS reports EPERM instead of ESRCH.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

let isWatching = false;

function endChildrenWithThisProcess(): void {
  if (isWatching) return;
  isWatching = true;
  process.on("exit", () => {
    for (const child of living) killGroup(child);
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, function endOnSignal() {
      // By default, a signal ends the process without an `exit` event, and a listener for the signal disables this
      // default. If there is another listener, it decides when to exit. Otherwise, this listener kills the children,
      // removes itself, and sends the signal again, so that the default ends the process.
      if (process.listenerCount(signal) > 1) return;
      for (const child of living) killGroup(child);
      process.off(signal, endOnSignal);
      process.kill(process.pid, signal);
    });
  }
}
