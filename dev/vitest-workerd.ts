import { beforeAll, vi } from "vitest";
import type { Rule } from "../src/config/rule.ts";
import { logDecision } from "../src/gateway/log.ts";

// A setup file of Vitest for tests in workerd, which share an isolate.

// The log counts the lines about denials in a second, and the denials without a line, for the whole isolate. This
// denial in another second ends both counts of the files before.
beforeAll(() => {
  const mocks = [
    vi.spyOn(console, "log").mockImplementation(() => {}),
    vi.spyOn(Date, "now").mockReturnValue(0),
  ];
  const appliedRule = { rule: { name: "", mode: "enforce" } as Rule, windows: [], identity: "" };
  const deniedBy = { appliedRule, says: "denied", quotas: [], cost: 1 } as const;
  const denial = { outcome: "limited", quotas: [], verdicts: [deniedBy], deniedBy } as const;
  logDecision({ ...denial, retryAfterMs: 0 }, Number.POSITIVE_INFINITY);
  for (const mock of mocks) mock.mockRestore();
});

// Virtual time lets other work run between its timers, which takes a millisecond each time, because
// workerd's `setImmediate` is a timer. Reading a body is a turn of the event loop, too, and takes a
// tenth of the time. Vitest keeps the function that it finds when virtual time first starts.
const { setImmediate } = globalThis;
const nextTurn = (callback: () => void) => void new Response("turn").text().then(callback);
globalThis.setImmediate = nextTurn as unknown as typeof setImmediate;
vi.useFakeTimers();
vi.useRealTimers();
globalThis.setImmediate = setImmediate;

// Before each call of a Durable Object, the plugin imports the Worker's main module, and Vitest asks
// its own process for the module each time.
interface ModuleRunner {
  import(path: string, options?: object): Promise<unknown>;
}
const { moduleRunner } = (
  globalThis as unknown as {
    __vitest_mocker__: { moduleRunner: ModuleRunner };
  }
).__vitest_mocker__;
if (!Object.hasOwn(moduleRunner, "import")) {
  const importModule = moduleRunner.import.bind(moduleRunner);
  const modules = new Map<string, Promise<unknown>>();
  moduleRunner.import = (path, options) => {
    if (!path.endsWith("/src/entry/worker.ts")) return importModule(path, options);
    const found = modules.get(path) ?? importModule(path);
    modules.set(path, found);
    return found;
  };
}
