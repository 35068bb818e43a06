import type { Fault } from "./support/fault.ts";

/** Durable Objects that a test can make fail. */
export interface ObjectEnvironment {
  /** Makes every object fail in this way from now on. "none" repairs all objects. */
  misbehave(how: string): Promise<void>;
}

function fault(does: string, cause: string, how: string): Fault<ObjectEnvironment> {
  return {
    does,
    cause,
    begin: ({ misbehave }) => misbehave(how),
    end: ({ misbehave }) => misbehave("none"),
  };
}

/** The faults of Durable Objects that a test can cause in workerd. */
export const OBJECT_FAULTS: readonly Fault<ObjectEnvironment>[] = [
  fault("throws", "unreachable", "throw"),
  fault("counts and then throws", "unreachable", "after it has counted"),
  fault("never answers", "timeout", "hang"),
  fault("blocks every call", "timeout", "block"),
  fault("cannot be started", "unreachable", "constructor"),
  fault("restarts with each call", "unreachable", "abort"),
  fault("cannot read its storage", "unreachable", "storage"),
  fault("answers null", "invalid-reply", "null"),
  fault("answers with an unexpected value", "invalid-reply", "shape"),
];
