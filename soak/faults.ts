import type { OwnRedis } from "../dev/own-redis.ts";
import type { RestFaultName } from "./rest-faults.ts";
import type { Backend } from "./start-backend.ts";

/** The parts that a fault can break. */
export interface FaultTargets {
  readonly redis: OwnRedis;
  readonly backend: Backend;
}

/** A fault of the store that lasts for a while. */
export interface Fault {
  readonly name: string;
  readonly begin: (targets: FaultTargets) => Promise<void>;
  readonly end: (targets: FaultTargets) => Promise<void>;
  /** Whether Redis loses its counters. @default false */
  readonly losesCounts?: boolean;
}

/** The faults, one for each round. After the last fault, the list starts again. */
export const FAULTS: readonly Fault[] = [
  // The first entries differ most from each other, so that a short run covers many kinds of faults.
  {
    name: "Redis is stopped",
    begin: async ({ redis }) => redis.pause(),
    end: async ({ redis }) => redis.resume(),
  },
  {
    name: "Redis restarts",
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
    losesCounts: true,
  },
  restFault("answers 503"),
  restFault("answers after 100 ms"),
  restFault("hangs"),
  restFault("resets connections"),
  restFault("fails every third time"),
  {
    name: "Redis is read-only",
    begin: ({ redis }) => redis.run("REPLICAOF", "127.0.0.1", "1"),
    end: ({ redis }) => redis.run("REPLICAOF", "NO", "ONE"),
  },
  restFault("answers after 2 s"),
  restFault("refuses connections"),
  restFault("answers that its quota is used up"),
];

function restFault(fault: RestFaultName): Fault {
  return {
    name: `REST ${fault}`,
    begin: ({ backend }) => backend.inject(fault),
    end: ({ backend }) => backend.inject(),
  };
}
