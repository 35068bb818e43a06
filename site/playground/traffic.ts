import { readRequestLine } from "../../cli/logs/access-line.ts";
import { createParser, recogniseFormat } from "../../cli/logs/log-format.ts";
import type { LogRequest } from "../../cli/logs/log-request.ts";
import type { Fault } from "../../src/config/faults.ts";

/** A task of the thread that decides requests. */
export interface Task {
  readonly id: number;
  /** The argument of `defineConfig`. */
  readonly input: unknown;
  readonly traffic: Traffic;
}

/** The requests that the user has chosen. */
export interface Traffic {
  readonly kind: "burst" | "steady" | "two" | "log";
  /** A method and a path. */
  readonly request: string;
  /** The status of the origin's responses. */
  readonly status: number;
  readonly perMinute: number;
  /** The lines of a log. */
  readonly log: string;
}

/** The result of a task: either the faults, or the decided requests. */
export interface Result {
  readonly id: number;
  readonly faults?: readonly Pick<Fault, "path" | "message">[];
  readonly decided?: readonly Decided[];
  /** The number of lines that are no requests. */
  readonly unread?: number;
}

/** A request, and the response that its client gets. */
export interface Decided {
  readonly at: number;
  readonly client: string;
  readonly request: string;
  /** Whether the origin got the request. */
  readonly passed: boolean;
  readonly status: number;
  readonly policy: string;
  readonly limit: string;
  readonly retryAfter: string;
}

interface Requests {
  /** In the order of their times. */
  readonly requests: readonly LogRequest[];
  /** The number of lines that are no requests. */
  readonly unread: number;
}

/** A Monday. Windows of a minute and of an hour begin. */
const START = Date.UTC(2026, 0, 5, 9);
const SECOND = 1000;
const MINUTES = 3;

/** @throws if the request has no method or no path */
export function requestsOf({ kind, request, status, perMinute, log }: Traffic): Requests {
  if (kind === "log") return readLog(log);
  const line = readRequestLine(request);
  if (typeof line !== "object") throw new Error("Write a method and a path, such as GET /search");
  const send = (ip: string, count: number, lengthMs: number): LogRequest[] =>
    Array.from({ length: count }, (_, index) => ({
      ...line,
      at: START + (index * lengthMs) / count,
      host: "api.example.com",
      ip,
      status,
      headers: undefined,
    }));
  if (kind === "burst") return { requests: send("192.0.2.1", perMinute, SECOND), unread: 0 };
  const first = send("192.0.2.1", MINUTES * perMinute, MINUTES * 60 * SECOND);
  const others = Math.ceil(first.length / 4);
  const second = kind === "two" ? send("192.0.2.2", others, MINUTES * 60 * SECOND) : [];
  return { requests: inOrder([...first, ...second]), unread: 0 };
}

/** The number of lines by which the format is recognised. */
const FIRST_LINES = 1000;

function readLog(log: string): Requests {
  const lines = log.split(/\r?\n/).filter((line) => line.trim() !== "");
  const first = lines.slice(0, FIRST_LINES);
  const format = recogniseFormat(first);
  if (!format) return { requests: [], unread: lines.length };
  const parser = createParser(format, first, new Map(), undefined);
  const contents = lines.map((line) => parser.parse(line));
  const requests = contents.filter((content) => typeof content === "object");
  return { requests: inOrder(requests), unread: lines.length - requests.length };
}

function inOrder(requests: readonly LogRequest[]): LogRequest[] {
  return requests.toSorted((a, b) => a.at - b.at);
}
