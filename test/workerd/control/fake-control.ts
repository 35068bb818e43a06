import {
  type StatisticsUpload,
  UPLOAD_INTERVAL_MS,
  type UploadAnswer,
} from "../../../src/control/protocol.ts";

/** The behaviour of the object at a call. `error-after`: it adds the sums, and then the answer is lost. */
export type Behaviour = "answer" | "refuse" | "hang" | "error-after" | "missing";

/** A control object that remembers what it has added, without a network. */
export class FakeControl {
  behaviour: Behaviour = "answer";
  answer: UploadAnswer = { callAgainMs: UPLOAD_INTERVAL_MS };
  /** The time that an answer takes, in milliseconds. */
  delayMs = 0;
  readonly calls: StatisticsUpload[] = [];
  readonly #lastSequences = new Map<string, number>();
  /** The requests that were added. */
  requests = 0;

  async upload(upload: StatisticsUpload): Promise<UploadAnswer> {
    const { behaviour } = this;
    // An object of another version may lack the method.
    if (behaviour === "missing") return undefined as never;
    this.calls.push(upload);
    if (behaviour === "refuse") throw new Error("The object is overloaded: 203.0.113.7.");
    if (behaviour === "hang") return new Promise(() => {});
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const { source, sequence, minutes } = upload;
    if (sequence > (this.#lastSequences.get(source) ?? 0)) {
      this.#lastSequences.set(source, sequence);
      for (const { requests } of minutes) this.requests += requests.requests;
    }
    if (behaviour === "error-after") throw new Error("The connection was lost.");
    return this.answer;
  }
}
