import { ICON, SCRIPT, SCRIPT_HASH, STYLE, STYLE_HASH } from "./assets.generated.ts";
import type { DashboardContext } from "./context.ts";

// The names of assets contain a hash of their content, so that browsers may keep them for ever.

const FOLDER = "/_weir/assets";

const ASSETS: Readonly<Record<string, { readonly type: string; readonly content: string }>> = {
  [`${SCRIPT_HASH}.js`]: { type: "text/javascript; charset=UTF-8", content: SCRIPT },
  [`${STYLE_HASH}.css`]: { type: "text/css; charset=UTF-8", content: STYLE },
  [`${STYLE_HASH}.svg`]: { type: "image/svg+xml", content: ICON },
};

/** The addresses of the assets. */
export const assetPaths = {
  script: `${FOLDER}/${SCRIPT_HASH}.js`,
  style: `${FOLDER}/${STYLE_HASH}.css`,
  icon: `${FOLDER}/${STYLE_HASH}.svg`,
} as const;

/** Answers with an asset. */
export function assetResponse(c: DashboardContext) {
  const name = c.req.param("name") ?? "";
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (!asset) return c.notFound();
  return c.body(asset.content, 200, {
    "Content-Type": asset.type,
    "Cache-Control": "private, max-age=31536000, immutable",
  });
}
