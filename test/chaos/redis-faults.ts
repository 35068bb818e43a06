import type { FaultyRest, RestFault } from "../../dev/faulty-rest.ts";
import type { OwnRedis } from "../../dev/own-redis.ts";
import type { Fault } from "./support/fault.ts";

export type RedisStage = { rest: FaultyRest; redis: OwnRedis };

/** Has Redis's clock read another time, to scripts that ask for it. */
function shiftedBy(seconds: number): RestFault {
  const shift = `redis.call('TIME')\ntime[1] = time[1] + ${seconds}`;
  return {
    command([name, script = "", ...rest], sourceOf) {
      const isDigest = name.toLowerCase() === "evalsha";
      const source = isDigest ? sourceOf(`${script}`) : `${script}`;
      // One that is not known is answered with NOSCRIPT, and then sent as a whole.
      if (source === undefined) return [name, script, ...rest];
      return ["EVAL", source.replace("redis.call('TIME')", shift), ...rest];
    },
  };
}

/** Redis as it is when it cannot, or when it is not what it was. */
export const REDIS_FAULTS: readonly Fault<RedisStage>[] = [
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
    does: "has been stopped",
    cause: "timeout",
    begin: ({ redis }) => redis.pause(),
    end: ({ redis }) => redis.resume(),
  },
  {
    does: "restarts, and has lost all counts",
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
    does: "has a clock that leaps an hour ahead",
    cause: undefined,
    begin: ({ rest }) => rest.inject(shiftedBy(3600)),
    end: ({ rest }) => rest.inject(),
  },
  {
    does: "has a clock that goes back by an hour",
    cause: undefined,
    begin: ({ rest }) => rest.inject(shiftedBy(-3600)),
    end: ({ rest }) => rest.inject(),
  },
];
