/** Returns a response with a stream of events, cut into pieces of this many bytes. */
export function eventStream(text: string, bytes = Number.POSITIVE_INFINITY): Response {
  return new Response(streamOf(text, bytes), {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
  });
}

/** Returns a body that arrives in pieces of this many bytes, and then ends or breaks off. */
export function streamOf(
  text: string,
  bytes = Number.POSITIVE_INFINITY,
  isBroken = false,
): ReadableStream<Uint8Array> {
  const whole = new TextEncoder().encode(text);
  let start = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (start < whole.length) controller.enqueue(whole.subarray(start, start + bytes));
      else if (isBroken) controller.error(new Error("Network connection lost."));
      else controller.close();
      start += bytes;
    },
  });
}

/** Writes each value as an event, as OpenAI's APIs do. */
export function eventsOf(...values: unknown[]): string {
  return values
    .map((value) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`)
    .join("");
}

/** Writes each value as an event with its type, as Anthropic's API and OpenAI's responses do. */
export function typedEventsOf(...values: { type: string; [name: string]: unknown }[]): string {
  return values.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`).join("");
}
