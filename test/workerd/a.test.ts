import { env, exports } from "cloudflare:workers";
import { expect, it } from "vitest";
it("x", async () => { const r = await exports.default.fetch("http://x/"); expect(await r.text()).toBe("hi"); console.log(Object.keys(env), navigator.userAgent) });
