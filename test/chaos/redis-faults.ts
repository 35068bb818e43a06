import type { FaultyRest, RestFault } from "../../dev/faulty-rest.ts";
import type { OwnRedis } from "../../dev/own-redis.ts";
import type { Fault } from "./support/fault.ts";

/** A Redis that a test can break, and the REST server in front of it. */
export interface RedisEnvironment {
  readonly rest: FaultyRest;
  readonly redis: OwnRedis;
}

/** Returns a fault that shifts the time that scripts read from Redis. */
function shiftedBy(seconds: number): RestFault {
  const shift = `call('TIME')\ntime[1] = time[1] + ${seconds}`;
  return {
    command([name, script = "", ...rest], sourceOf) {
      const isDigest = name.toLowerCase() === "evalsha";
      const source = isDigest ? sourceOf(`${script}`) : `${script}`;
      // Redis answers an unknown digest with NOSCRIPT, so the client then sends the script's
      // source.
      if (source === undefined) return [name, script, ...rest];
      return ["EVAL", source.replace("call('TIME')", shift), ...rest];
    },
  };
}

/** The faults of Redis itself. */
export const REDIS_FAULTS: readonly Fault<RedisEnvironment>[] = [
  {
    does: "is a read-only replica",
    cause: "error-reply",
    begin: ({ redis }) => redis.run("REPLICAOF", "127.0.0.1", "1"),
    end: ({ redis }) => redis.run("REPLICAOF", "NO", "ONE"),
  },
  {
    does: "is out of memory",
    cause: "error-reply",
    begin: ({ redis }) => redis.run("CONFIG", "SET", "maxmemory", "1"),
    end: ({ redis }) => redis.run("CONFIG", "SET", "maxmemory", "0"),
  },
  {
    does: "is paused",
    cause: "timeout",
    begin: ({ redis }) => redis.pause(),
    end: ({ redis }) => redis.resume(),
  },
  {
    does: "restarts and has lost all counts",
    cause: "error-reply",
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
  },
  {
    does: "has forgotten its scripts",
    cause: undefined,
    begin: ({ redis }) => redis.run("SCRIPT", "FLUSH"),
    end: () => {},
  },
  {
    does: "has a clock that jumps an hour ahead",
    cause: undefined,
    begin: ({ rest }) => rest.inject(shiftedBy(3600)),
    end: ({ rest }) => rest.inject(),
  },
  {
    does: "has a clock that jumps back an hour",
    cause: undefined,
    begin: ({ rest }) => rest.inject(shiftedBy(-3600)),
    end: ({ rest }) => rest.inject(),
  },
];
