/**
 * The source of a settle function. It returns the last number of the body. If the body breaks off, it
 * returns the last number that has arrived.
 */
export const USAGE = `async usage(response) {
  let text = "";
  try {
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) text += chunk;
  } catch {
    // The body has broken off.
  }
  const numbers = text.match(/\\d+/g);
  return numbers ? Number(numbers.at(-1)) : undefined;
},`;
