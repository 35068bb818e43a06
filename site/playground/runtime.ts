/**
 * Stands in for the modules of Workers and of Node that the code of Weir imports, because the playground runs this
 * code in a browser. Import this module first.
 */

// In dev mode, Vite loads modules whose code the built site leaves out. They read these properties when they start.
Object.assign(globalThis, { process: { env: {}, stdout: {} } });

export function waitUntil(): void {}

export class DurableObject {}

export class WorkerEntrypoint {}

/** Node's function is only a short cut: code that gets false parses the address itself. */
export function isIPv4(): boolean {
  return false;
}

export function styleText(_style: unknown, text: string): string {
  return text;
}
