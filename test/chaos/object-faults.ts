import type { Fault } from "./support/fault.ts";

/** Has the objects do something else from now on. */
export type ObjectStage = { misbehave(how: string): Promise<void> };

function fault(does: string, cause: string, how: string): Fault<ObjectStage> {
  return {
    does,
    cause,
    begin: ({ misbehave }) => misbehave(how),
    end: ({ misbehave }) => misbehave("none"),
  };
}

/** What can be wrong with Durable Objects, as far as it can be brought about in workerd. */
export const OBJECT_FAULTS: readonly Fault<ObjectStage>[] = [
  fault("throws", "unreachable", "throw"),
  fault("counts, and then throws", "unreachable", "after it has counted"),
  fault("never answers", "timeout", "hang"),
  fault("lets nobody in", "timeout", "block"),
  fault("cannot be started", "unreachable", "constructor"),
  fault("is restarted with each call", "unreachable", "abort"),
  fault("cannot read its storage", "unreachable", "storage"),
  fault("answers null", "unreachable", "null"),
  fault("answers in another shape", "unreachable", "shape"),
];
