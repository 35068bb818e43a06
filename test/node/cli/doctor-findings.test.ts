import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startJsRedis } from "../../../dev/js-redis.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";
import { hasRedisServer } from "../dev/redises.ts";
import { answerJson, findingsOf, startDatabase, type TestDatabase } from "./doctor-database.ts";

describe.runIf(hasRedisServer)("weir doctor", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await startDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());
  afterEach(async () => {
    database.intercept();
    // Every test leaves only its own keys, so the doctor has removed those that it wrote.
    const left = (await database.keys()).filter((key) => key.startsWith("weir:doctor-"));
    await database.run("FLUSHALL");
    expect(left).toEqual([]);
  });

  /** Never answers a call, and lets its deadline pass. */
  const hang = () => {
    database.pass(60_000);
    return true;
  };
  const codes = async (...args: Parameters<typeof findingsOf>) =>
    (await findingsOf(...args)).map(({ code }) => code);
  const find = async (code: string, ...args: Parameters<typeof findingsOf>) => {
    const findings = await findingsOf(...args);
    const found = findings.find((finding) => finding.code === code);
    expect(found, JSON.stringify(findings, null, 1)).toBeDefined();
    return found as NonNullable<typeof found>;
  };

  test.for(["store", "edge"] as const)(
    "reports nothing wrong in a clean database: %s",
    async (clock) => {
      expect(await codes(database, { clock })).toEqual([
        "url-ok",
        "token-ok",
        "round-trip-ok",
        "clock-ok",
        "eviction-off",
        // redis-server refuses Upstash's flag of the scripts; the local REST server removes it.
        "vectors-ok",
        "cleaned-up",
      ]);
    },
  );

  test("reports a wrong token, and does not print it", async () => {
    const token = "wrong-token-7a9f";
    const findings = await findingsOf({ ...database, token });
    expect(findings.map(({ code }) => code)).toEqual(["url-ok", "token-wrong"]);
    expect(findings[1]?.cure).toContain("UPSTASH_REDIS_REST_TOKEN from the same database");
    expect(JSON.stringify(findings)).not.toContain(token);
  });

  test("reports a clock that is 5 s off", async () => {
    database.intercept((name, response) => {
      if (name !== "TIME") return false;
      const now = Date.now() + 5000;
      return answerJson(response, 200, {
        result: [`${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`],
      });
    });
    const { severity, cure, measured } = await find("clock-skewed", database);
    expect(severity).toBe("warning");
    expect(cure).toContain("synchronize the wrong one by NTP");
    // The doctor assumes that both ways of a call took equally long. All values are rounded.
    const { skewMs, uncertaintyMs } = measured as { skewMs: number; uncertaintyMs: number };
    expect(Math.abs(skewMs - 5000)).toBeLessThanOrEqual(uncertaintyMs + 2);
  });

  test("reports a clock that is an hour off", async () => {
    database.intercept((name, response) => {
      const seconds = `${Math.floor(Date.now() / 1000) - 3600}`;
      return name === "TIME" && answerJson(response, 200, { result: [seconds, "0"] });
    });
    expect((await find("clock-wrong", database)).severity).toBe("fault");
  });

  test("reports that the store returns no time", async () => {
    database.intercept(
      (name, response) =>
        name === "TIME" && answerJson(response, 400, { error: "ERR unknown command 'TIME'" }),
    );
    expect((await find("clock-unknown", database)).severity).toBe("unknown");
  });

  test("reports a slow round trip", async () => {
    const slow = (ms: number, calls: number) =>
      database.intercept((name, response) => {
        if (name !== "TIME" || calls-- <= 0) return false;
        const seconds = `${Math.floor(Date.now() / 1000)}`;
        setTimeout(() => answerJson(response, 200, { result: [seconds, "0"] }), ms);
        return true;
      });
    slow(30, Number.POSITIVE_INFINITY);
    expect((await find("round-trip-too-slow", database, { timeoutMs: 20 })).severity).toBe("fault");
    // The other calls keep the median below the timeout, even on a busy machine.
    slow(1600, 1);
    const { cure } = await find("round-trip-slow", database, { timeoutMs: 3000 });
    expect(cure).toContain("--at measures it");
  });

  test.for([
    ["ERR max daily request limit exceeded. Limit: 10000, Usage: 10001.", "quota-used-up"],
    ["ERR max requests limit exceeded. Limit: 500000, Usage: 500000.", "quota-used-up"],
    ["ERR DB capacity quota exceeded", "database-full"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "database-full"],
    ["READONLY You can't write against a read only replica.", "token-read-only"],
    ["MISCONF Redis is configured to save RDB snapshots", "write-refused"],
  ] as const)("reports the reason of a refused write: %s", async ([error, code]) => {
    database.intercept((name, response) => name === "SET" && answerJson(response, 400, { error }));
    const { severity, message, cure } = await find(code, database);
    expect({ severity, message }).toEqual({ severity: "fault", message: error });
    expect(cure).not.toBe("");
  });

  test("reports scripts that are refused", async () => {
    const error = "NOPERM this user has no permissions to run the 'eval' command";
    database.intercept(
      (name, response) => name.startsWith("EVAL") && answerJson(response, 400, { error }),
    );
    expect((await find("scripts-refused", database)).message).toBe(error);
  });

  test('reports that the server refuses the flag of the scripts with clock: "edge"', async () => {
    const error = "ERR Unexpected flag in script shebang: allow-key-locking";
    database.intercept(
      (name, response) => name.startsWith("EVAL") && answerJson(response, 400, { error }),
    );
    expect((await find("script-flag-refused", database, { clock: "edge" })).message).toBe(error);
  });

  test("reports a database that forgets counts", async () => {
    database.intercept(async (name) => {
      if (name === "EVALSHA") await database.run("FLUSHALL");
      return false;
    });
    const { severity, message } = await find("vector-differs", database);
    expect(severity).toBe("fault");
    expect(message).toMatch(/^\d of 3 vectors: ".+": step \d: .+, expected /);
  });

  test("reports INFO that is not available as unknown, not as ok", async () => {
    const error = "NOPERM this user has no permissions to run the 'info' command";
    database.intercept((name, response) => name === "INFO" && answerJson(response, 400, { error }));
    expect(await codes(database)).toContain("eviction-unknown");
  });

  test("reports a server that hangs from the first call", async () => {
    database.intercept(hang);
    const found = await findingsOf(database);
    expect(found.map(({ code }) => code)).toEqual(["url-ok", "no-answer"]);
    expect(found[1]?.cure).toContain("onError");
  });

  test.for([3, 15])(
    "reports a server that hangs from call %i on, and names the keys that are left",
    async (from) => {
      database.intercept((_name, _response, call) => call >= from && hang());
      const found = await findingsOf(database);
      expect(found.map(({ code }) => code).filter((code) => !code.endsWith("-ok"))).toEqual(
        expect.arrayContaining(["keys-left"]),
      );
      expect(found.at(-1)?.message).toContain("they expire within 5 minutes");
      for (const key of await database.keys()) {
        const name = key.split(" ")[0] as string;
        expect(name).toMatch(/^weir:doctor-[0-9a-f]{8}:/);
        const ttlMs = Number(await database.run("PTTL", name));
        expect(ttlMs).toBeGreaterThan(0);
        expect(ttlMs).toBeLessThan(5 * 60_000);
      }
      await database.run("FLUSHALL");
    },
  );

  test("removes its keys after a server that hung has recovered", async () => {
    database.intercept((name, _response, call) => call >= 15 && name === "EVALSHA" && hang());
    const found = await findingsOf(database);
    expect(found.slice(-2).map(({ code }) => code)).toEqual(["no-answer", "keys-left"]);
    expect(found.at(-1)?.message).toContain("did not confirm 1 call (EVALSHA)");
  });

  test("reports that the run was stopped, and removes its keys", async () => {
    const stopping = new AbortController();
    database.intercept((_name, _response, call) => {
      if (call === 15) stopping.abort("ended by Ctrl-C");
      return false;
    });
    const found = await findingsOf(database, {}, stopping.signal);
    expect(found.slice(-2).map(({ code }) => code)).toEqual(["not-finished", "cleaned-up"]);
  });

  test.for<[string, Parameters<TestDatabase["intercept"]>[0], string]>([
    [
      "a redirect",
      (_name, response) => {
        response.writeHead(301, { location: "http://127.0.0.1:9/" });
        response.end();
        return true;
      },
      "not-a-rest-api",
    ],
    [
      "a page in HTML",
      (_name, response) => {
        response.writeHead(200, { "content-type": "text/html" });
        response.end("<html>");
        return true;
      },
      "not-a-rest-api",
    ],
    [
      "a 503 in HTML",
      (_name, response) => {
        response.writeHead(503, { "content-type": "text/html" });
        response.end("<html>");
        return true;
      },
      "not-a-rest-api",
    ],
    ["a JSON text", (_name, response) => answerJson(response, 200, "PONG"), "not-a-rest-api"],
    [
      "an answer without end",
      (_name, response) => {
        response.writeHead(200);
        const write = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", write);
        write();
        return true;
      },
      "not-a-rest-api",
    ],
    [
      "an answer that never completes",
      (_name, response) => {
        response.writeHead(200);
        response.write(" ");
        return hang();
      },
      "no-answer",
    ],
    [
      "a connection that breaks",
      (_name, response) => {
        response.destroy();
        return true;
      },
      "unreachable",
    ],
  ])("reports a server that is no database: %s", async ([, answer, code]) => {
    database.intercept(answer);
    const found = await findingsOf(database);
    expect(found.map((each) => each.code)).toEqual(["url-ok", code]);
    expect(found[1]?.severity).toBe("fault");
  });

  test.for([
    ["redis://default:hunter2secret@eu1.upstash.io:6379", "url-invalid"],
    ["https://default:hunter2secret@eu1.upstash.io", "url-invalid"],
    ["hunter2secret", "url-invalid"],
    ["http://127.0.0.1:9", "unreachable"],
    ["http://db.invalid/hunter2secret", "url-not-https"],
  ] as const)(
    "reports a URL that cannot be right, without printing it: %s",
    async ([url, code]) => {
      const found = await findingsOf({ ...database, url });
      expect(found.map((each) => each.code)).toContain(code);
      expect(JSON.stringify(found)).not.toContain("hunter2secret");
    },
  );
});

describe.runIf(hasRedisServer)("weir doctor, for settings of redis-server,", () => {
  test("reports eviction that is on", async () => {
    await using database = await startDatabase(
      ...["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
    );
    const findings = await findingsOf(database);
    const found = findings.find(({ code }) => code === "eviction-on");
    expect(found).toMatchObject({ severity: "fault", message: "maxmemory_policy is allkeys-lru" });
    expect(found?.cure).toContain("Turn eviction off");
    expect(await database.keys()).toEqual([]);
  });

  test("reports that a command of the script is missing", async () => {
    await using database = await startDatabase("--rename-command", "INCRBY", "");
    const findings = await findingsOf(database);
    const found = findings.find(({ code }) => code === "vectors-failed");
    expect(found?.severity).toBe("fault");
    expect(found?.message).toMatch(/unknown redis command/i);
    expect(found?.cure).toContain("rename-command");
    expect(await database.keys()).toEqual([]);
  });

  test("reports a read-only token", async () => {
    await using database = await startDatabase();
    const user = { username: "reader", password: "reader-password" };
    await database.run(
      "ACL",
      "SETUSER",
      "reader",
      "on",
      ">reader-password",
      "~*",
      "+@read",
      "+ping",
      "+time",
      "+info",
      "+@connection",
    );
    await database.becomeUser(user);
    const findings = await findingsOf(database);
    const found = findings.find(({ code }) => code === "token-read-only");
    expect(found?.severity).toBe("fault");
    expect(found?.message).toMatch(/^NOPERM .*set/);
    expect(found?.cure).toContain("Use the standard token");
    // Nothing was written, so nothing needs to be removed.
    expect(findings.map(({ code }) => code)).not.toContain("keys-left");
    expect(await database.keys()).toEqual([]);
  });
});

test("weir doctor reports no fault for a database without INFO, and marks the eviction as unknown", async () => {
  const redis = await startJsRedis();
  const rest = await startUpstashRest({ redis });
  const findings = await findingsOf(rest);
  await rest.stop();
  await redis.stop();
  const unknown = findings.filter(({ severity }) => severity !== "ok").map(({ code }) => code);
  expect(unknown).toEqual(["eviction-unknown"]);
});
