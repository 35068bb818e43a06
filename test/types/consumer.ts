// `npm run types` compiles this file. The function is in docs/responses.md, and
// test/node/http/consumer.test.ts calls it.

export async function fetchInTime(url: string, init?: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, init);
    const { status, headers } = response;
    const seconds = Number(headers.get("retry-after"));
    const mayRepeat = (status === 429 || status === 503) && seconds > 0 && seconds <= 60;
    if (!mayRepeat || attempt === 5) return response;
    const factor = (status === 503 ? 2 ** (attempt - 1) : 1) + Math.random() / 5;
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000 * factor));
  }
}
