import { type Actor, WORLD } from "../../../cli/simulation/actor.ts";
import type { Random } from "../../../cli/simulation/random.ts";
import type { VirtualTime } from "../../../cli/simulation/virtual-time.ts";
import { Collector, CollectorCount, parentOf, Sources } from "../../../src/control/fan-in.ts";
import type { HandOver, HandOverAnswer } from "../../../src/control/protocol.ts";
import { validHandOver } from "../../../src/control/valid-hand-over.ts";

/** The one-way time of a call, in milliseconds: between a hub and the global object, and in a location. */
const FAR_MS = 100;
const NEAR_MS = 10;

interface SimulatedObject extends Actor {
  isAlive: boolean;
  handOver(handOver: HandOver): Promise<HandOverAnswer>;
}

/**
 * The Durable Objects. The collectors are Weir's own. In place of tables, the global object has only
 * the number of counted requests.
 */
export class Objects {
  /** The requests that the global object has counted. */
  counted = 0;
  /** The most calls of a second, by the name of the object. */
  readonly mostCalls = new Map<string, number>();
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #meanLifeMs: number;
  readonly #objects = new Map<string, SimulatedObject>();
  readonly #second = new Map<string, { second: number; calls: number; at: number }>();
  #storedCollectors = 0;

  constructor(time: VirtualTime, random: Random, meanLifeMs: number) {
    this.#time = time;
    this.#random = random;
    this.#meanLifeMs = meanLifeMs;
  }

  /** Returns the number of objects that were called after a time. */
  calledSince(since: number): number {
    return [...this.#second.values()].filter(({ at }) => at >= since).length;
  }

  /**
   * Calls an object.
   *
   * @returns undefined if the call fails, or if its answer does not arrive in time
   */
  call(
    caller: Actor,
    name: string,
    handOver: HandOver,
    timeoutMs: number,
  ): Promise<HandOverAnswer | undefined> {
    const time = this.#time;
    const oneWayMs = (name === "global" ? FAR_MS : NEAR_MS) * (0.7 + this.#random.exponential(0.3));
    return new Promise((resolve) => {
      const deadline = time.at(time.now + timeoutMs, caller, () => resolve(undefined));
      const answer = (value: HandOverAnswer | undefined) => {
        time.at(time.now + oneWayMs, caller, () => {
          deadline.task = undefined;
          resolve(value);
        });
      };
      time.at(time.now + oneWayMs, WORLD, () => {
        this.#count(name);
        const object = this.#objectNamed(name);
        // Timers and the clock of the rest of this event belong to the object.
        time.continueAs(object);
        object.handOver(validHandOver(handOver)).then(answer, () => answer(undefined));
      });
    });
  }

  #count(name: string): void {
    const second = Math.floor(this.#time.now / 1000);
    const counter = this.#second.get(name);
    const calls = counter?.second === second ? counter.calls + 1 : 1;
    this.#second.set(name, { second, calls, at: this.#time.now });
    this.mostCalls.set(name, Math.max(this.mostCalls.get(name) ?? 0, calls));
  }

  #objectNamed(name: string): SimulatedObject {
    const existing = this.#objects.get(name);
    if (existing) return existing;
    const parent = parentOf(name);
    const object =
      parent === undefined ? this.#createGlobal() : this.#createCollector(name, parent);
    this.#objects.set(name, object);
    if (parent !== undefined && this.#meanLifeMs < Number.POSITIVE_INFINITY) {
      this.#time.at(this.#time.now + this.#random.exponential(this.#meanLifeMs), object, () => {
        object.isAlive = false;
        this.#objects.delete(name);
      });
    }
    return object;
  }

  #createCollector(name: string, parent: string): SimulatedObject {
    const callParent = async (handOver: HandOver) => {
      const answer = await this.call(object, parent, handOver, Number.MAX_SAFE_INTEGER);
      if (!answer) throw new Error("The call has failed.");
      return answer;
    };
    const collector = new Collector(name, callParent);
    const object = {
      skewMs: 0,
      isAlive: true,
      handOver: (handOver: HandOver) => collector.handOver(handOver),
    };
    return object;
  }

  #createGlobal(): SimulatedObject {
    const sources = new Sources();
    const collectors = new CollectorCount(this.#storedCollectors, this.#time.now);
    return {
      skewMs: 0,
      isAlive: true,
      handOver: async (handOver) => {
        const now = Date.now();
        if (sources.see(handOver, now)) {
          for (const { requests } of handOver.minutes) this.counted += requests.requests;
        }
        this.#storedCollectors = collectors.update(sources.running(now).isolates, now);
        const version = 1;
        return {
          collectors: this.#storedCollectors,
          ...(handOver.overridesVersion !== version && {
            overrides: { version, isComplete: true, set: [], removed: [] },
          }),
        };
      },
    };
  }
}
