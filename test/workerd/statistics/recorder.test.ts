import { describe, expect, it, vi } from "vitest";
import {
  type Decision,
  isViolated,
  type Limited,
  type RuleVerdict,
} from "../../../src/limiter/decision.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import {
  MAX_DENIALS,
  MAX_LIMITED_CLIENTS,
  MAX_MINUTES,
  Recorder,
} from "../../../src/statistics/recorder.ts";
import {
  MINUTE_MS,
  MinuteRecord,
  type MinuteSums,
  noRequests,
  noRuleSums,
  type RequestSums,
  type RuleSums,
} from "../../../src/statistics/sums.ts";
import { verdictOn } from "../../verdicts.ts";
import { allowed, applied, limited, quota, shadowDenial, undecided } from "./decisions.ts";

const NOW = 29_000_000 * MINUTE_MS;

function setUp() {
  const tasks: Promise<unknown>[] = [];
  let now = NOW;
  const recorder = new Recorder({ background: (task) => tasks.push(task), clock: () => now });
  return {
    recorder,
    advance: (ms: number) => (now += ms),
    settle: () => Promise.all(tasks.splice(0)),
  };
}

/** Adds the missing verdicts to a decision: all rules that are not in shadow mode have admitted the request. */
function withVerdicts(rules: readonly AppliedRule[], decision: Decision): Decision {
  if (decision.outcome === "undecided") return decision;
  const { quotas, verdicts } = decision;
  const others = rules.filter(
    ({ rule }) =>
      rule.mode !== "shadow" &&
      (!decision.storeFailure || rule.onError === "local") &&
      !verdicts.some(({ appliedRule }) => appliedRule.rule === rule),
  );
  const added = others.map((each) => {
    const policies = each.windows.map(({ policy }) => policy);
    const own = quotas.filter(({ policy }) => policies.includes(policy));
    return verdictOn(each, own.some(isViolated) ? "denied" : "admitted", { quotas: own });
  });
  return { ...decision, verdicts: [...verdicts, ...added] };
}

const requests = (sums: Partial<RequestSums>) => ({ ...noRequests(), ...sums });
const ruleSums = (sums: Partial<RuleSums>) => ({ ...noRuleSums(), ...sums });

describe("the sums of a minute", () => {
  const api = applied({ name: "api" });
  const login = applied({ name: "login" });
  const mark = applied({ name: "plan", mode: "mark" });
  const shadow = applied({ name: "trial", mode: "shadow" });
  const local = applied({ name: "local", onError: "local" });

  it("count requests without a rule and requests that cannot be read", () => {
    const { recorder } = setUp();
    recorder.recordUnmatched();
    recorder.recordRefused();
    const [minute] = recorder.take().minutes;
    expect(minute?.requests).toEqual(requests({ requests: 2, unmatched: 1, refused: 1 }));
    expect(minute?.rules).toEqual({});
  });

  it.each([
    {
      title: "an allowed request for each rule",
      rules: [api, login],
      decision: allowed({ fromMemory: true }),
      requests: { allowed: 1, fromMemory: 1 },
      sums: { api: { allowed: 1 }, login: { allowed: 1 } },
    },
    {
      title: "a denied request only for the rule that denied it",
      rules: [api, login, mark],
      decision: limited(login),
      requests: { limited: 1 },
      sums: { api: {}, login: { limited: 1, peak: 1 }, plan: {} },
    },
    {
      title: "a marked request",
      rules: [api, mark],
      decision: allowed({
        verdicts: [
          verdictOn(api, "admitted"),
          verdictOn(mark, "denied", { quotas: [quota("plan", true)] }),
        ],
      }),
      requests: { allowed: 1 },
      sums: { api: { allowed: 1 }, plan: { marked: 1, peak: 1 } },
    },
    {
      title: "a request within the limit of a mark rule",
      rules: [mark],
      decision: allowed({ quotas: [quota("plan", false)] }),
      requests: { allowed: 1 },
      sums: { plan: { allowed: 1 } },
    },
    {
      title: "a mark that could not be decided",
      rules: [api, mark],
      decision: allowed({ verdicts: [verdictOn(mark, "undecided")] }),
      requests: { allowed: 1 },
      sums: { api: { allowed: 1 }, plan: { undecided: 1 } },
    },
    {
      title: "a shadow denial",
      rules: [api, shadow],
      decision: allowed({ verdicts: [shadowDenial(shadow)] }),
      requests: { allowed: 1 },
      sums: { api: { allowed: 1 }, trial: { shadowLimited: 1, peak: 1 } },
    },
    {
      title: "a shadow rule that could not be decided",
      rules: [shadow],
      decision: allowed({ verdicts: [verdictOn(shadow, "undecided")] }),
      requests: { allowed: 1 },
      sums: { trial: { undecided: 1 } },
    },
    {
      title: "an undecided request that passes",
      rules: [api, shadow],
      decision: undecided(true),
      requests: { undecidedPassed: 1 },
      sums: { api: { undecided: 1 }, trial: { undecided: 1 } },
    },
    {
      title: "an undecided request that is denied",
      rules: [api],
      decision: undecided(false),
      requests: { undecidedDenied: 1 },
      sums: { api: { undecided: 1 } },
    },
    {
      title: "a request that this isolate admitted alone",
      rules: [api, local, shadow],
      decision: allowed({ storeFailure: undecided(true) }),
      requests: { allowed: 1, countedLocally: 1 },
      sums: { api: { undecided: 1 }, local: { allowed: 1 }, trial: { undecided: 1 } },
    },
    {
      title: "a request that has waited for its turn",
      rules: [api],
      decision: allowed({ waitedMs: 700 }),
      requests: { allowed: 1, waited: 1, waitedMs: 700 },
      sums: { api: { allowed: 1 } },
    },
    {
      title: "a request that this isolate denied alone",
      rules: [local],
      decision: limited(local, { storeFailure: undecided(true) }),
      requests: { limited: 1, countedLocally: 1 },
      sums: { local: { limited: 1, peak: 1 } },
    },
  ])("count $title", ({ rules, decision, requests: wanted, sums }) => {
    const { recorder } = setUp();
    recorder.record(rules, withVerdicts(rules, decision));
    const [minute] = recorder.take().minutes;
    expect(minute?.requests).toEqual(requests({ requests: 1, ...wanted }));
    expect(minute?.rules).toEqual(
      Object.fromEntries(
        Object.entries(sums).map(([name, each]) => [name, ruleSums({ requests: 1, ...each })]),
      ),
    );
  });

  it("count shadow rules that are decided later when they are decided", async () => {
    const { recorder, settle } = setUp();
    const pendingRules = Promise.resolve([shadow]);
    const late = vi.fn();
    recorder.onLateSums = late;
    const pendingVerdict = Promise.resolve([shadowDenial(shadow)]);
    const verdicts = [verdictOn(shadow, "undecided", { pendingVerdict })];
    recorder.record([{ ...shadow, windows: [], pendingRules }], allowed({ verdicts }));
    expect(recorder.take().minutes[0]?.rules).toEqual({});
    await settle();
    const { minutes, clients } = recorder.take();
    expect(minutes[0]?.requests.requests).toBe(0);
    expect(minutes[0]?.rules).toEqual({
      trial: ruleSums({ requests: 1, shadowLimited: 1, peak: 1 }),
    });
    expect(clients).toMatchObject([{ rule: "trial", client: "client", shadow: true, count: 1 }]);
    expect(late).toHaveBeenCalledWith(NOW);
  });

  it("do not count an exempt request for a shadow rule whose client is identified later", async () => {
    const { recorder, settle } = setUp();
    const pendingRules = Promise.resolve([]);
    recorder.record([{ ...shadow, windows: [], pendingRules }], undecided(true));
    await settle();
    expect(recorder.take().minutes[0]?.rules).toEqual({});
  });

  describe("of a request that passes ahead", () => {
    const reads = applied({ name: "reads", async: true });
    const exact = applied({ name: "exact" });
    const covered = verdictOn(exact, "admitted");

    /** Passes a request ahead of the verdict on `reads`, and returns the sums before and after it. */
    async function sumsOf(late: RuleVerdict) {
      const { recorder, advance, settle } = setUp();
      const uploaded: MinuteSums[] = [];
      recorder.onLateSums = () => void uploaded.push(...recorder.take().minutes);
      const verdicts = Promise.resolve([late]);
      const pending = verdictOn(reads, "undecided", { pendingVerdict: verdicts });
      const ahead = { policies: () => [], quotas: () => [], verdicts };
      recorder.record([reads, exact], allowed({ verdicts: [covered, pending], ahead }));
      const { minutes } = recorder.take();
      advance(MINUTE_MS);
      await settle();
      expect(recorder.isEmpty, "sums that wait for the next request").toBe(true);
      return { before: minutes, after: uploaded };
    }

    it.each<[string, RuleVerdict, Partial<RequestSums>, Partial<RuleSums>]>([
      ["the store admits it", verdictOn(reads, "admitted"), {}, { allowed: 1 }],
      [
        "the store denies it",
        verdictOn(reads, "denied", { quotas: [quota("reads", true)] }),
        { over: 1 },
        { over: 1, peak: 1 },
      ],
      ["the store cannot decide it", verdictOn(reads, "undecided"), {}, { undecided: 1 }],
    ])("count it at once, and its outcome when %s", async (_, late, wanted, ofRule) => {
      const { before, after } = await sumsOf(late);
      expect(before).toMatchObject([
        {
          requests: requests({ requests: 1, allowed: 1, ahead: 1 }),
          rules: {
            reads: ruleSums({ requests: 1, ahead: 1 }),
            exact: ruleSums({ requests: 1, allowed: 1 }),
          },
        },
      ]);
      const total = new MinuteRecord(0);
      for (const each of after) total.add(each);
      expect(total.toSums()).toMatchObject({
        requests: requests(wanted),
        rules: { reads: ruleSums(ofRule) },
      });
    });
  });

  it("count calls to the store by their duration", () => {
    const { recorder } = setUp();
    recorder.recordStoreCall({ durationMs: 3, failed: false, commands: 2 });
    recorder.recordStoreCall({ durationMs: 5, failed: false, commands: 3 });
    recorder.recordStoreCall({ durationMs: 9000, failed: true, commands: 0 });
    const store = recorder.take().minutes[0]?.store;
    expect(store).toMatchObject({ calls: 3, failures: 1, commands: 5, latencyMs: 9008 });
    expect(store?.latency).toEqual([0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  });

  it("have a rule with the name of an inherited field", () => {
    const { recorder } = setUp();
    recorder.record([applied({ name: "constructor" })], allowed());
    const rules = recorder.take().minutes[0]?.rules;
    expect(Object.hasOwn(rules ?? {}, "constructor")).toBe(true);
  });
});

describe("the peak of a rule", () => {
  const api = applied({ name: "api" });
  const plan = applied({ name: "plan", mode: "mark" });
  const trial = applied({ name: "trial", mode: "shadow" });
  const two = applied({
    name: "two",
    limits: [
      { limit: 10, window: "1m" },
      { limit: 100, window: "1h" },
    ],
  });
  const sharded = applied({ name: "sharded", limit: 100, shards: 4 });
  const left = (policy: string, limit: number, remaining: number) => ({
    ...quota(policy, false),
    limit,
    remaining,
  });

  it.each([
    {
      title: "the largest part of its limits that the client has used",
      rules: [api, two],
      quotas: [left("api", 8, 6), left("two/1m", 10, 9), left("two/1h", 100, 13)],
      peaks: { api: 0.25, two: 0.87 },
    },
    {
      title: "that of the window that is used most, whatever the order of the windows",
      rules: [plan, trial, two],
      quotas: [left("two/1m", 10, 1), left("two/1h", 100, 60), left("plan", 4, 3)],
      peaks: { plan: 0.25, trial: 0, two: 0.9 },
    },
    {
      title: "0 if the decision lacks the quota",
      rules: [api, two],
      quotas: [left("two/1h", 100, 40)],
      peaks: { api: 0, two: 0.6 },
    },
    {
      title: "0 while quota that rolled over is left",
      rules: [api],
      quotas: [left("api", 8, 11)],
      peaks: { api: 0 },
    },
    {
      title: "1 if all quota is used, and 1 if the quota denies the request",
      rules: [api, plan],
      quotas: [left("api", 8, 0), { ...left("plan", 8, 5), violated: true }],
      peaks: { api: 1, plan: 1 },
    },
    {
      title: "0 for a request of cost 0 if the limit is 0",
      rules: [api],
      quotas: [left("api", 0, 0)],
      peaks: { api: 0 },
    },
    {
      title: "the used part of a shard's share if the rule has shards",
      rules: [sharded],
      quotas: [left("sharded", 100, 10)],
      peaks: { sharded: 0.6 },
    },
  ])("is $title", ({ rules, quotas, peaks }) => {
    const { recorder } = setUp();
    recorder.record(rules, withVerdicts(rules, allowed({ quotas })));
    const sums = recorder.take().minutes[0]?.rules ?? {};
    expect(
      Object.fromEntries(Object.entries(sums).map(([name, { peak }]) => [name, peak])),
    ).toEqual(peaks);
  });

  it("is the largest of all requests, also if minutes are added", () => {
    const { recorder, advance } = setUp();
    for (const remaining of [7, 2, 5, 6, 4, 3, 8]) {
      for (const each of [remaining, 8]) {
        recorder.record([api], withVerdicts([api], allowed({ quotas: [left("api", 8, each)] })));
      }
      advance(MINUTE_MS);
    }
    expect(recorder.take().minutes.map(({ rules }) => rules.api?.peak)).toEqual([
      0.75, 0.25, 0.5, 0.625, 0,
    ]);
  });
});

describe("the highest number of open requests of a client", () => {
  const fields = { limits: undefined, concurrent: 4 };
  const model = applied({ name: "model", ...fields });
  const plan = applied({ name: "plan", mode: "mark", ...fields });
  const trial = applied({ name: "trial", mode: "shadow", ...fields });
  const blocked = { ...model, blockedUntil: NOW + 1000 };
  const api = applied({ name: "api" });
  const own = (policy: string, open: number, isViolated = false) => ({
    quotas: [{ ...quota(policy, isViolated), limit: 4, remaining: 4 - open, concurrent: true }],
  });
  const peaksOf = (recorder: Recorder) =>
    recorder
      .take()
      .minutes.map(({ rules }) =>
        Object.fromEntries(Object.entries(rules).map(([name, sums]) => [name, sums.openPeak])),
      );

  it.each([
    {
      title: "that of each rule that admits or marks",
      rules: [model, plan, api],
      decision: allowed({
        verdicts: [
          verdictOn(model, "admitted", own("model", 2) as object),
          verdictOn(plan, "denied", own("plan", 4, true) as object),
          verdictOn(api, "admitted", {
            quotas: [{ ...quota("api", false), limit: 5, remaining: 1 }],
          }),
        ],
      }),
      peaks: { model: 2, plan: 4, api: undefined },
    },
    {
      title: "the limit after a denial",
      rules: [model],
      decision: limited(model, {
        verdicts: [verdictOn(model, "denied", own("model", 4, true) as object)],
      }),
      peaks: { model: 4 },
    },
    {
      title: "unknown if the isolate decides alone",
      rules: [model],
      decision: allowed({
        storeFailure: undecided(true),
        verdicts: [verdictOn(model, "admitted", own("model", 1) as object)],
      }),
      peaks: { model: undefined },
    },
    {
      title: "unknown if the client is blocked",
      rules: [blocked],
      decision: limited(blocked, {
        verdicts: [verdictOn(blocked, "denied", own("model", 4, true) as object)],
      }),
      peaks: { model: undefined },
    },
  ])("is $title", ({ rules, decision, peaks }) => {
    const { recorder } = setUp();
    recorder.record(rules, decision);
    expect(peaksOf(recorder)).toEqual([peaks]);
  });

  it("is known for a rule in shadow mode that admits the request later", async () => {
    const { recorder, settle } = setUp();
    const late = vi.fn();
    recorder.onLateSums = late;
    const admitted = verdictOn(trial, "admitted", own("trial", 3) as object);
    const pendingVerdict = Promise.resolve([admitted]);
    const verdicts = [verdictOn(trial, "undecided", { pendingVerdict })];
    recorder.record([trial], allowed({ verdicts }));
    await settle();
    expect(peaksOf(recorder)).toEqual([{ trial: 3 }]);
    expect(late).toHaveBeenCalledWith(NOW);
  });

  it("is the highest of all requests, also if minutes are added", () => {
    const { recorder, advance } = setUp();
    for (const open of [1, 4, 2, 1, 3, 2]) {
      for (const each of [open, 1]) {
        const verdicts = [verdictOn(model, "admitted", own("model", each) as object)];
        recorder.record([model], allowed({ verdicts }));
      }
      advance(MINUTE_MS);
    }
    expect(peaksOf(recorder).map(({ model: peak }) => peak)).toEqual([4, 2, 1, 3, 2]);
  });
});

describe("while sums cannot be uploaded", () => {
  it("a few minutes are kept, and older ones are added to the oldest of them", () => {
    const { recorder, advance } = setUp();
    const api = applied({ name: "api" });
    const minutes = 60;
    for (let minute = 0; minute < minutes; minute++) {
      recorder.record([api], withVerdicts([api], allowed()));
      advance(MINUTE_MS);
    }
    const taken = recorder.take().minutes;
    expect(taken).toHaveLength(MAX_MINUTES);
    const total = taken.reduce((sum, { rules }) => sum + (rules.api?.allowed ?? 0), 0);
    expect(total).toBe(minutes);
    expect(taken.map(({ requests }) => requests.requests)).toEqual([56, 1, 1, 1, 1]);
    expect(recorder.isEmpty).toBe(true);
  });

  it("the sums of a minute stay together if the clock goes back", () => {
    const { recorder, advance } = setUp();
    recorder.recordUnmatched();
    advance(MINUTE_MS);
    recorder.recordUnmatched();
    advance(-MINUTE_MS);
    recorder.recordUnmatched();
    const taken = recorder.take().minutes;
    expect(taken.map(({ requests }) => requests.requests)).toEqual([2, 1]);
  });
});

describe("the clients most limited", () => {
  it("have exact counts while there are few of them", () => {
    const { recorder } = setUp();
    const [one, other] = [applied({ name: "api" }, "one"), applied({ name: "api" }, "other")];
    for (const rule of [one, other, one]) recorder.record([rule], limited(rule));
    expect(recorder.take().clients).toEqual([
      { rule: "api", client: "one", count: 2, error: 0, lastAt: NOW, shadow: false },
      { rule: "api", client: "other", count: 1, error: 0, lastAt: NOW, shadow: false },
    ]);
    expect(recorder.take().clients).toEqual([]);
  });

  it("stay among 10,000 others, with a count that is too high by at most the error", () => {
    const { recorder } = setUp();
    const heavy = applied({ name: "api" }, "heavy");
    for (let sent = 0; sent < 10_000; sent++) {
      const other = { ...heavy, identity: `other-${sent}` };
      recorder.record([other], limited(other));
      if (sent % 20 === 0) recorder.record([heavy], limited(heavy));
    }
    const { clients } = recorder.take();
    expect(clients).toHaveLength(MAX_LIMITED_CLIENTS);
    const { count, error } = clients.find(({ client }) => client === "heavy") ?? {
      count: 0,
      error: 0,
    };
    expect(count).toBeGreaterThanOrEqual(500);
    expect(count - error).toBeLessThanOrEqual(500);
  });
});

describe("the denials of clients", () => {
  const login = applied({ name: "login" });
  const denied = (fields: Partial<Limited> = {}) =>
    limited(login, { quotas: [quota("login/1m", false), quota("login/1h", true)], ...fields });
  const of = { rule: "login", policy: "login/1h", client: "client" };

  it("are one entry for the denials of a client by a policy in a minute", () => {
    const { recorder, advance } = setUp();
    recorder.record([login], denied(), undefined, "FRA");
    advance(2000);
    recorder.record([login], denied({ retryAfterMs: 700 }), undefined, "SIN");
    advance(MINUTE_MS);
    const never: Limited = { ...denied() };
    Reflect.deleteProperty(never, "retryAfterMs");
    recorder.record([login], never);
    const last = NOW + 2000 + MINUTE_MS;
    expect(recorder.take().denials).toEqual([
      {
        ...of,
        mode: "enforce",
        count: 2,
        firstAt: NOW,
        lastAt: NOW + 2000,
        retryAfterMs: 700,
        colo: "SIN",
      },
      { ...of, mode: "enforce", count: 1, firstAt: last, lastAt: last },
    ]);
    expect(recorder.take().denials).toEqual([]);
  });

  it("say if the isolate counted alone, if the rule is in shadow mode, and if they came too late", async () => {
    const { recorder, settle } = setUp();
    const trial = applied({ name: "trial", mode: "shadow" });
    const reads = applied({ name: "reads", async: true });
    const storeFailure = undecided(true);
    recorder.record([login], denied({ storeFailure }));
    const pendingVerdict = Promise.resolve([shadowDenial(trial)]);
    const pending = verdictOn(trial, "undecided", { pendingVerdict });
    recorder.record([trial], allowed({ verdicts: [pending] }), undefined, "FRA");
    const late = verdictOn(reads, "denied", { quotas: [quota("reads", true)] });
    const verdicts = Promise.resolve([late]);
    const ahead = { policies: () => [], quotas: () => [], verdicts };
    recorder.record([reads], allowed({ verdicts: [], ahead }), undefined, "FRA");
    await settle();
    expect(recorder.take().denials).toMatchObject([
      { rule: "login", policy: "login/1h", mode: "local" },
      { rule: "trial", policy: "trial", mode: "shadow", colo: "FRA" },
      { rule: "reads", policy: "reads", mode: "ahead", colo: "FRA" },
    ]);
  });

  it("are at most 200, with those of clients that are denied often, and the newest of the others", () => {
    const { recorder, advance } = setUp();
    for (let sent = 0; sent < 10_000; sent++) {
      const other = { ...login, identity: `other-${sent}` };
      recorder.record([other], limited(other));
      if (sent % 100 === 0) recorder.record([login], denied());
      advance(1);
    }
    const { denials } = recorder.take();
    expect(denials).toHaveLength(MAX_DENIALS);
    expect(denials.find(({ client }) => client === "client")).toMatchObject({ count: 100 });
    expect(denials.at(-1)?.client).toBe("other-9999");
  });
});
