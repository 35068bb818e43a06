import type { OwnRedis } from "../dev/own-redis.ts";
import type { RestFaultName } from "./rest-faults.ts";
import type { Backend } from "./start-backend.ts";

export type Broken = { redis: OwnRedis; backend: Backend };

/** Something that is wrong for a while. */
export type Fault = {
  name: string;
  begin(broken: Broken): Promise<void>;
  end(broken: Broken): Promise<void>;
  /** Whether what was counted before is lost. */
  losesCounts?: boolean;
};

/** In the order in which they come, again and again; those that differ most come first. */
export const FAULTS: readonly Fault[] = [
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
  ofRest("answers 503"),
  ofRest("answers after 100 ms"),
  ofRest("hangs"),
  ofRest("resets connections"),
  ofRest("fails every third time"),
  {
    name: "Redis is read-only",
    begin: ({ redis }) => redis.run("REPLICAOF", "127.0.0.1", "1"),
    end: ({ redis }) => redis.run("REPLICAOF", "NO", "ONE"),
  },
  ofRest("answers after 2 s"),
  ofRest("refuses connections"),
  ofRest("has its quota used up"),
];

function ofRest(fault: RestFaultName): Fault {
  return {
    name: `REST ${fault}`,
    begin: ({ backend }) => backend.inject(fault),
    end: ({ backend }) => backend.inject(),
  };
}
