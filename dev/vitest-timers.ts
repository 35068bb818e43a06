import { vi } from "vitest";

/**
 * A setup file of Vitest for tests in workerd. Virtual time lets other work run between its timers,
 * which takes a millisecond each time, because workerd's `setImmediate` is a timer. Reading a body
 * is a turn of the event loop, too, and takes a tenth of the time.
 */
const { setImmediate } = globalThis;
const nextTurn = (callback: () => void) => void new Response("turn").text().then(callback);
globalThis.setImmediate = nextTurn as unknown as typeof setImmediate;
// Vitest keeps the function that it finds when virtual time starts for the first time.
vi.useFakeTimers();
vi.useRealTimers();
globalThis.setImmediate = setImmediate;
