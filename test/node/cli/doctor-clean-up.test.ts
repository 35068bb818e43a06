import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { hasRedisServer } from "../dev/redises.ts";
import { answerJson, findingsOf, startDatabase, type TestDatabase } from "./doctor-database.ts";

const FAST = { timeoutMs: 100 };

describe.runIf(hasRedisServer)("weir doctor removes its keys", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await startDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());
  afterEach(async () => {
    database.intercept();
    await database.run("FLUSHALL");
  });

  const last = async (...args: Parameters<typeof findingsOf>) =>
    (await findingsOf(...args)).at(-1) as Awaited<ReturnType<typeof findingsOf>>[number];

  test.for([
    ["SET", 2],
    ["EVAL", 10],
    ["EVALSHA", 14],
  ] as const)(
    "but reports a call that the database may run after its deadline: %s",
    async ([slow, from]) => {
      const removed = Promise.withResolvers<void>();
      let isSlow = true;
      database.intercept(async (name, _response, call) => {
        if (!isSlow || name !== slow || call < from) return false;
        isSlow = false;
        // The deadline is a second. The database runs the call after the removal.
        database.pass(1200);
        await removed.promise;
        return false;
      });
      const found = await findingsOf(database, FAST);
      removed.resolve();
      await database.idle();
      expect(found.slice(-2).map(({ code }) => code)).toEqual(["no-answer", "keys-left"]);
      expect(found.at(-1)?.message).toContain(`did not confirm 1 call (${slow})`);
    },
  );

  test("after the call that was in flight when the run was stopped", async () => {
    const stopping = new AbortController();
    database.intercept(async (name) => {
      if (name !== "SET") return false;
      stopping.abort("ended by SIGINT");
      await nextTurn();
      database.pass(900);
      return false;
    });
    const found = await findingsOf(database, {}, stopping.signal);
    expect(found.slice(-2).map(({ code }) => code)).toEqual(["not-finished", "cleaned-up"]);
    expect(await database.keys()).toEqual([]);
  });

  test.for<[string, Parameters<TestDatabase["intercept"]>[0]]>([
    ["a broken connection", (_name, response) => !response.destroy().closed || true],
    [
      "an error of a proxy",
      (_name, response) => {
        response.writeHead(504, { "content-type": "text/html" });
        response.end("<html>");
        return true;
      },
    ],
  ])("but reports that a write call may still run after %s", async ([, fail]) => {
    let hasFailed = false;
    database.intercept((name, response, call) => {
      if (hasFailed || call < 14 || name !== "EVALSHA") return false;
      hasFailed = true;
      return fail?.(name, response, call) ?? false;
    });
    const { code, message } = await last(database);
    expect(code).toBe("keys-left");
    expect(message).toContain("did not confirm 1 call (EVALSHA), so keys may be left");
    expect(message).toContain("they expire within 5 minutes");
  });

  test("on a database that needs longer for the removal than other calls", async () => {
    database.intercept(async (name) => {
      if (name === "DEL") database.pass(1600);
      return false;
    });
    expect((await last(database, FAST)).code).toBe("cleaned-up");
    expect(await database.keys()).toEqual([]);
  });

  test("or names the refused command", async () => {
    const error = "NOPERM this user has no permissions to run the 'del' command";
    database.intercept((name, response) => name === "DEL" && answerJson(response, 400, { error }));
    const { code, message } = await last(database);
    expect(code).toBe("keys-left");
    expect(message).toContain(`DEL was refused (${error}), so`);
  });

  test("with a token that is limited to Weir's prefix", async () => {
    const user = { username: "limited", password: "limited-password" };
    await database.run(
      ...([
        "ACL",
        "SETUSER",
        user.username,
        "on",
        `>${user.password}`,
        "~weir:*",
        "+@all",
      ] as const),
    );
    await database.becomeUser(user);
    const found = await findingsOf(database);
    expect(found.filter(({ severity }) => severity === "fault")).toEqual([]);
    expect(found.at(-1)?.code).toBe("cleaned-up");
    const others = await findingsOf(database, { prefix: "other" });
    const refused = others.find(({ code }) => code === "keys-not-permitted");
    expect(refused?.cure).toContain("~weir:*");
    await database.becomeUser({ username: "default", password: "" });
  });
});
