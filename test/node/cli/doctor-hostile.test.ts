import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { jsonReport, type Subject, textReport } from "../../../cli/doctor/findings.ts";
import { hasRedisServer } from "../dev/redises.ts";
import {
  answerJson,
  findingsOf,
  type Intercept,
  startDatabase,
  type TestDatabase,
} from "./doctor-database.ts";

/** Control characters, line separators, and characters that change the direction of a text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the report must not contain them
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;
const EVIL = "ERR \u001b[2J\u009b31m\u202egnihton\u2066\n  ok  vectors-ok  fake\r\u0007";

describe.runIf(hasRedisServer)("weir doctor and a hostile database", () => {
  let database: TestDatabase;
  let subject: Subject;
  beforeAll(async () => {
    database = await startDatabase();
    subject = { noun: "The database", headline: "", fields: {}, secrets: [database.token] };
  });
  afterAll(() => database[Symbol.asyncDispose]());
  afterEach(async () => {
    database.intercept();
    await database.run("FLUSHALL");
  });

  const codes = async (...args: Parameters<typeof findingsOf>) =>
    (await findingsOf(...args)).map(({ code }) => code);

  /** Answers the calls of the vectors, which are the last calls with a script. */
  const inVectors =
    (answer: Intercept): Intercept =>
    (name, response, call) =>
      call > 12 && name.startsWith("EVAL") && answer(name, response, call);

  test.for(["SET", "EVALSHA", "INFO", "TIME", "EVAL", "PING"])(
    "prints no text of the database that a terminal obeys, and no token: %s",
    async (command) => {
      const error = `${EVIL}${database.token}`;
      database.intercept(
        (name, response) => name === command && answerJson(response, 400, { error }),
      );
      const findings = await findingsOf(database);
      for (const report of [textReport(subject, findings), jsonReport(subject, findings)]) {
        expect(report).not.toMatch(OBEYED);
        expect(report).not.toContain(database.token);
        expect(report).not.toMatch(/^ *ok +vectors-ok +fake/m);
      }
    },
  );

  test("makes every text of a report safe to print, also the text of a check that does not", () => {
    const message = `${EVIL}${database.token}`;
    const finding = { code: "token-ok", severity: "ok", message } as const;
    for (const report of [textReport(subject, [finding]), jsonReport(subject, [finding])]) {
      expect(report).not.toMatch(OBEYED);
      expect(report).not.toContain(database.token);
    }
  });

  const objects = { toString: 1, valueOf: 1 };
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

  test.for<[string, unknown, string]>([
    ["TIME", { result: [objects, "1"] }, "clock-unknown"],
    ["TIME", { result: [null, null] }, "clock-unknown"],
    ["EVALSHA", { result: [objects, [[[]]], null, "x"] }, "vectors-failed"],
    ["EVALSHA", `{"result":${deep}}`, "vectors-failed"],
    ["EVALSHA", { error: { a: 1 } }, "not-a-rest-api"],
  ])("reads an answer of another form: %s %j", async ([command, body, code]) => {
    database.intercept((name, response, call) => {
      if (name !== command || (name === "EVALSHA" && call < 12)) return false;
      if (typeof body !== "string") return answerJson(response, 200, body);
      response.end(body);
      return true;
    });
    expect(await codes(database)).toContain(code);
  });

  test.for<[string, Intercept, string]>([
    [
      "the quota is used up",
      (_name, response) =>
        answerJson(response, 400, { error: "ERR max requests limit exceeded. Limit: 500000" }),
      "quota-used-up",
    ],
    [
      "the token is revoked",
      (_name, response) => answerJson(response, 401, { error: "WRONGPASS invalid token" }),
      "token-wrong",
    ],
    [
      "the token is forbidden",
      (_name, response) => answerJson(response, 403, { error: "Forbidden" }),
      "token-wrong",
    ],
    ["the connection breaks", (_name, response) => !!response.destroy(), "unreachable"],
    [
      "the server hangs",
      () => {
        database.pass(60_000);
        return true;
      },
      "no-answer",
    ],
    [
      "a proxy answers 503 in HTML",
      (_name, response) => {
        response.writeHead(503, { "content-type": "text/html" });
        response.end("<html>");
        return true;
      },
      "not-a-rest-api",
    ],
    [
      "an answer has no end",
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
      "the database is full",
      (_name, response) => answerJson(response, 400, { error: "ERR DB capacity quota exceeded" }),
      "database-full",
    ],
  ])("names the reason if it begins during the vectors: %s", async ([, answer, code]) => {
    database.intercept(inVectors(answer));
    const found = await codes(database, { timeoutMs: 100 });
    expect(found).toContain(code);
    expect(found).not.toContain("vectors-failed");
  });

  test.for(["tok€n", "tok\nen", "tok en", "tok\u0001en"])(
    "makes no call with a token that the Worker does not use: %j",
    async (token) => {
      let calls = 0;
      database.intercept(() => {
        calls += 1;
        return false;
      });
      const found = await findingsOf({ ...database, token });
      expect(found.map(({ code }) => code)).toEqual(["url-ok", "token-malformed"]);
      expect(JSON.stringify(found)).not.toContain(token);
      expect(calls).toBe(0);
    },
  );

  test("accepts a URL that ends in slashes, as the Worker does", async () => {
    expect(await codes({ ...database, url: `${database.url}///` })).toContain("vectors-ok");
  });
});
