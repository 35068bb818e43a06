import { describe, expect, it } from "vitest";
import { sumOfCalls } from "../../../../bench/environment/redis-meter.ts";

describe("the count of Redis commands", () => {
  it("includes scripts and their commands, without the commands of the bench", () => {
    const info = [
      "# Commandstats",
      "cmdstat_evalsha:calls=10,usec=100,usec_per_call=10.00,rejected_calls=0,failed_calls=1",
      "cmdstat_bitfield:calls=9,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
      "cmdstat_script|load:calls=3,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
      "cmdstat_info:calls=100,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
      "cmdstat_client|setinfo:calls=2,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
      "cmdstat_flushall:calls=4,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
    ].join("\r\n");
    expect(sumOfCalls(info)).toBe(22);
  });
});
