import * as workers from "cloudflare:workers";

// Custom spans: parts of the traces that Cloudflare records for a Worker with tracing. Names and
// attributes contain no value of a client.

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span that has begun. */
export interface OpenSpan {
  /** Whether the span is recorded. */
  readonly isTraced: boolean;
  setAttribute(name: string, value: string | number | boolean): unknown;
}

/** The part of the runtime's `tracing` that Weir uses. Older runtimes have no `tracing`. */
export interface Spans {
  /** The span ends when the promise that the callback returns settles. */
  enterSpan<Result>(name: string, callback: (span: OpenSpan) => Result): Result;
  getActiveSpan(): Pick<OpenSpan, "isTraced"> | undefined;
}

const tracing = (workers as { readonly tracing?: Partial<Spans> }).tracing;

/** Undefined if the runtime has no custom spans. */
export const runtimeSpans: Spans | undefined =
  typeof tracing?.enterSpan === "function" && typeof tracing.getActiveSpan === "function"
    ? (tracing as Spans)
    : undefined;

/**
 * Whether the current request is recorded in a trace. A span takes several microseconds even if it
 * is not recorded, so tasks without I/O begin one only if this is true.
 */
export function isTraced(spans = runtimeSpans): boolean {
  return spans?.getActiveSpan()?.isTraced === true;
}

/**
 * Runs a task in a span. Without spans in the runtime, only runs the task.
 *
 * @param attributesOf returns the attributes of a result; called only if the span is recorded
 */
export function inSpan<Result>(
  name: string,
  task: () => Promise<Result>,
  attributesOf?: (result: Result) => Attributes,
  spans = runtimeSpans,
): Promise<Result> {
  if (!spans) return task();
  return spans.enterSpan(name, async (span) => {
    const result = await task();
    if (attributesOf && span.isTraced) {
      for (const [attribute, value] of Object.entries(attributesOf(result))) {
        span.setAttribute(attribute, value);
      }
    }
    return result;
  });
}
