import type { ControlApi, HandOver, HandOverAnswer } from "../../../src/control/protocol.ts";

/** What the object does with a call. `error-after`: it adds the sums, and then the answer is lost. */
export type Behaviour = "answer" | "refuse" | "hang" | "error-after" | "missing";

/** Control objects that remember what they have added, without a network. */
export class FakeControl {
  behaviour: Behaviour = "answer";
  answer: HandOverAnswer = { collectors: 0 };
  /** The time that an answer takes, in milliseconds. */
  delayMs = 0;
  /** All calls, with the names of the objects. */
  readonly calls: (HandOver & { readonly objectName: string })[] = [];
  readonly #lastSequences = new Map<string, number>();
  /** The requests that were added. */
  requests = 0;

  readonly objectNamed = (objectName: string): Pick<ControlApi, "handOver"> => {
    if (this.behaviour === "missing") return {} as Pick<ControlApi, "handOver">;
    return { handOver: (handOver: HandOver) => this.handOver(handOver, objectName) };
  };

  async handOver(handOver: HandOver, objectName = ""): Promise<HandOverAnswer> {
    this.calls.push({ ...handOver, objectName });
    const { behaviour } = this;
    if (behaviour === "refuse") throw new Error("The object is overloaded: 203.0.113.7.");
    if (behaviour === "hang") return new Promise(() => {});
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const source = `${objectName} ${handOver.source}`;
    if (handOver.sequence > (this.#lastSequences.get(source) ?? 0)) {
      this.#lastSequences.set(source, handOver.sequence);
      for (const { requests } of handOver.minutes) this.requests += requests.requests;
    }
    if (behaviour === "error-after") throw new Error("The connection was lost.");
    return this.answer;
  }
}
