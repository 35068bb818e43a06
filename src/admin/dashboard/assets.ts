import { ICON, SCRIPT, SCRIPT_HASH, STYLE, STYLE_HASH } from "./assets.generated.ts";
import type { DashboardContext } from "./forms.ts";

/** The addresses of the assets. Each address has a hash of the content, so that browsers may keep it for ever. */
export const assetPaths = {
  script: `/_weir/assets/${SCRIPT_HASH}.js`,
  icon: `/_weir/assets/${STYLE_HASH}.svg`,
  /** The log-in page uses the same style sheet without a session. */
  style: `/_weir/login/${STYLE_HASH}.css`,
} as const;

const ASSETS = new Map<string, readonly [type: string, content: string]>([
  [assetPaths.script, ["text/javascript; charset=UTF-8", SCRIPT]],
  [assetPaths.icon, ["image/svg+xml", ICON]],
  [assetPaths.style, ["text/css; charset=UTF-8", STYLE]],
]);

/** Answers with an asset. */
export function assetResponse(c: DashboardContext) {
  const [type, content] = ASSETS.get(c.req.path) ?? [];
  if (type === undefined || content === undefined) return c.notFound();
  return c.body(content, 200, {
    "Content-Type": type,
    "Cache-Control": "private, max-age=31536000, immutable",
  });
}
