/**
 * The rules of this repository that a compiler does not know, as functions from a file to sentences about it. They
 * look at text with its comments blanked out: TypeScript has no API here that would parse it.
 */
import type { SourceFile } from './source-files.ts'

/** Which packages each package may import. Anything else is a protocol, or a mistake. */
const DIRECTIONS: Record<string, readonly string[]> = {
  shared: [],
  // A library of its own: what it needs of shared it names as `#shared/…`, and its build copies that in.
  sandbox: [],
  storage: ['shared', 'sandbox'],
  web: ['shared'],
  'engine-gate': ['shared', 'sandbox'],
  'ai-agent': ['shared', 'storage', 'sandbox'],
  service: ['shared', 'storage'],
  backup: ['shared', 'storage', 'sandbox'],
  cli: ['shared', 'sandbox'],
  'mcp-kit': ['shared'],
  'flights-mcp': ['mcp-kit', 'shared'],
  'google-calendar-mcp': ['mcp-kit', 'shared'],
}

/** Allowed subpaths of a package, if the direction alone allows too much. */
const NARROWER: { from: string; to: RegExp; why: string }[] = [
  {
    from: 'storage',
    to: /^@sandlot\/sandbox\/(?!(ledger|errors)$)/,
    why: 'storage implements the ledger, throws its errors, and sees nothing else of sandbox',
  },
  {
    from: 'engine-gate',
    to: /^@sandlot\/sandbox\/(?!(backend|controller\/(images|limit-settings)|limits|names|backends\/docker\/(create-template|read-template|seccomp|connection|tls-settings))$)/,
    why: 'the gate knows the create template and what it is made of, and nothing that talks to an engine',
  },
  {
    from: 'backup',
    to: /^@sandlot\/(sandbox\/(?!(backend|errors|names|controller\/(images|limit-settings)|backends\/docker\/(backend|tls-settings)|backends\/kubernetes\/(backend|settings))$)|storage\/(?!(storage-error|migrate\/to-postgres|database\/(copy-together|lock|postgres-snapshot)|(accounts|store)\/migrations)$))/,
    why: 'a backup copies files, databases and volumes, and knows nothing of what is in them',
  },
  {
    from: 'web',
    to: /^@sandlot\/shared\/node\//,
    why: 'shared/node is for Node only, and must not get into the page',
  },
  {
    from: 'engine-gate',
    to: /^@sandlot\/shared\/(?!(config|base\/errors)$)/,
    why: 'of the shared words the gate needs only how settings are read',
  },
]

/** The one file or folder of a package that imports a vendor's library. A library that is not here has no place yet. */
const VENDORS: { library: RegExp; only: RegExp }[] = [
  { library: /^zod$/, only: /^(packages\/(?!web\/src\/.*\.tsx)|mcp\/)/ },
  { library: /^dockerode$/, only: /^packages\/sandbox\/(src\/backends\/docker|bench)\// },
  { library: /^yaml$/, only: /^packages\/sandbox\/src\/backends\/kubernetes\/access\.ts/ },
  { library: /^openai$/, only: /^packages\/ai-agent\/bench\// },
  {
    library: /^lru-cache$/,
    only: /^(packages\/(ai-agent|service|storage)\/src\/|mcp\/mcp-kit\/src\/lookups\.ts)/,
  },
  { library: /^unbash$/, only: /^packages\/ai-agent\/src\/approval\/shell\// },
  { library: /^strip-ansi$/, only: /^packages\/ai-agent\/src\// },
  {
    library: /^ws$/,
    only: /^packages\/[a-z-]+\/src\/(.*\/)?(agent|acp|socket|backends\/kubernetes|keep-alive\.ts|[a-z-]*(socket|client|server|upgrade)[a-z-]*\.ts)/,
  },
  {
    library: /^@agentclientprotocol\/sdk$/,
    only: /^packages\/(ai-agent\/src\/(acp\/|main\.ts)|service\/src\/)/,
  },
  { library: /^(kysely|better-sqlite3|pg)(\/|$)/, only: /^packages\/storage\/src\// },
  {
    library: /^(better-auth|@better-auth\/api-key|@node-rs\/argon2)(\/|$)/,
    only: /^packages\/storage\/src\/accounts\/auth/,
  },
  { library: /^(hono|@hono\/node-server)(\/|$)/, only: /^packages\/service\/src\// },
  { library: /^@pydantic\/genai-prices$/, only: /^packages\/ai-agent\/src\/model\/facts\.ts/ },
  { library: /^(@peculiar\/x509|reflect-metadata)$/, only: /^packages\/ai-agent\/src\/acp\/tls\.ts/ },
  { library: /^@opentelemetry\//, only: /^packages\/ai-agent\/src\/metrics\/tracing\.ts/ },
  { library: /^vitest\/node$/, only: /^packages\/cli\/src\/testing\/reporter\.ts/ },
  { library: /^prom-client$/, only: /^packages\/(ai-agent|service)\/src\/(.*\/)?metrics/ },
  {
    library: /^rate-limiter-flexible$/,
    only: /^(packages\/service\/src\/(.*\/)?[a-z-]*limit|mcp\/mcp-kit\/src\/lookups\.ts)/,
  },
  { library: /^web-push$/, only: /^packages\/service\/src\/notifications\/push\.ts/ },
  {
    library: /^micromark(-extension-gfm)?$/,
    only: /^packages\/service\/src\/chat\/export-html\.ts/,
  },
  { library: /^yazl$/, only: /^packages\/service\/src\/own-data\/folder-zip\.ts/ },
  { library: /^nodemailer$/, only: /^packages\/service\/src\/notifications\/mail\.ts/ },
  { library: /^@modelcontextprotocol\/client(\/|$)/, only: /^packages\/ai-agent\/src\/mcp\// },
  { library: /^@modelcontextprotocol\/server(\/|$)/, only: /^mcp\/mcp-kit\/src\/serve\.ts/ },
  { library: /^@duffel\/api$/, only: /^mcp\/flights-mcp\/src\/duffel\.ts/ },
  { library: /^@googleapis\/calendar$/, only: /^mcp\/google-calendar-mcp\/src\/google\.ts/ },
  { library: /^jose$/, only: /^packages\/service\/src\/sign-in\/oidc-provider\.ts/ },
  { library: /^pino$/, only: /^packages\/(ai-agent|service)\/src\// },
  { library: /^react(-dom)?(\/|$)/, only: /^packages\/web\/src\// },
  { library: /^@xterm\//, only: /^packages\/web\/src\/.*(terminal|ansi|output)/i },
  {
    library: /^(streamdown|@streamdown\/.*)(\/|$)/,
    only: /^packages\/web\/src\/.*(markdown|highlight|code|styles|main)/i,
  },
  {
    library: /^(pdfjs-dist|papaparse|@tanstack\/react-virtual)(\/|$)/,
    only: /^packages\/web\/src\/(preview|chat\/transcript)\//,
  },
  { library: /^(katex|mermaid)(\/|$)/, only: /^packages\/web\/src\/markdown\// },
  { library: /^uplot(\/|$)/, only: /^packages\/web\/src\/settings\/usage\/chart\.tsx/ },
  {
    library:
      /^(@base-ui\/react|lucide-react|clsx|tailwind-merge|use-stick-to-bottom|qr|wouter|zustand)(\/|$)/,
    only: /^packages\/web\/src\//,
  },
]

/** The same text with comments blanked out, so that positions and lines stay. Strings that look like one are kept. */
export function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g,
    (whole: string, literal: string | undefined) => literal ?? whole.replaceAll(/[^\n]/g, ' '),
  )
}

/** Every module that a file names: static imports, re-exports, dynamic imports. */
export function specifiers(text: string): string[] {
  const code = withoutComments(text)
  const found = [
    ...code.matchAll(/^[ \t]*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm),
    ...code.matchAll(/^[ \t]*import\s*['"]([^'"]+)['"]/gm),
    ...code.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g),
  ]
  return found.map((match) => match[1] ?? '')
}

function packageOf(path: string): string | undefined {
  return /^(?:packages|mcp)\/([^/]+)\//.exec(path)?.[1]
}

const isSource = (path: string): boolean => /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/.test(path)

/** Imports that go against the directions, leave the package by a relative path, or have no `.ts` ending. */
export function directionProblems({ path, text }: SourceFile): string[] {
  const from = packageOf(path)
  if (from === undefined || !isSource(path)) return []
  const allowed = DIRECTIONS[from]
  if (allowed === undefined) return [`${path}: the package ${from} has no place in the directions`]
  return specifiers(text).flatMap((specifier) => {
    const ours = /^@sandlot\/([^/]+)(\/.+)?$/.exec(specifier)
    if (ours !== null) {
      const to = ours[1] ?? ''
      if (to === from) return [`${path}: imports its own package by name (${specifier})`]
      if (!allowed.includes(to)) return [`${path}: ${from} may not import ${to} (${specifier})`]
      if (ours[2] === undefined) return [`${path}: import a subpath of ${specifier}, not the package`]
      return NARROWER.filter((rule) => rule.from === from && rule.to.test(specifier)).map(
        (rule) => `${path}: ${rule.why} (${specifier})`,
      )
    }
    if (specifier.startsWith('.') && leaves(path, specifier))
      return [`${path}: leaves its package by ${specifier}`]
    return []
  })
}

function leaves(path: string, specifier: string): boolean {
  const target = new URL(specifier, `file:///${path}`).pathname.slice(1)
  const [folder, name] = path.split('/')
  return !target.startsWith(`${folder}/${name}/`)
}

/** Imports of Node outside of `shared/src/node`: the page imports the rest of `shared`. */
export function nodeEntryProblems({ path, text }: SourceFile): string[] {
  if (!/^packages\/shared\/src\/(?!node\/)/.test(path)) return []
  return specifiers(text)
    .filter((specifier) => /^node:|^(\.\.?\/)+node\//.test(specifier))
    .map((specifier) => `${path}: ${specifier} is for Node only; move what needs it into shared/src/node`)
}

/** Vendor libraries outside the one file or folder that may know them. */
export function vendorProblems({ path, text }: SourceFile): string[] {
  if (!isSource(path)) return []
  return specifiers(text)
    .filter((specifier) => !/^(\.|#|node:|@sandlot\/|virtual:)/.test(specifier))
    .flatMap((specifier) => {
      const rules = VENDORS.filter((rule) => rule.library.test(specifier))
      if (rules.length === 0)
        return [`${path}: ${specifier} has no place in test/import-rules.ts; say where it belongs`]
      return rules
        .filter((rule) => !rule.only.test(path))
        .map((rule) => `${path}: ${specifier} is only for ${rule.only}`)
    })
}

/** `process.env` outside a `config.ts`: settings would be read where nobody validates or lists them. */
export function environmentProblems({ path, text }: SourceFile): string[] {
  if (!isSource(path) || path.endsWith('/config.ts')) return []
  return /\bprocess\s*\.\s*env\b|\bprocess\s*\[\s*['"]env|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b|import\.meta\.env\.(?!DEV|PROD|MODE)/.test(
    withoutComments(text),
  )
    ? [`${path}: process.env is read in config.ts files only`]
    : []
}

/** Files that only pass on what other files export, and `export *`, which passes on names nobody chose. */
export function barrelProblems({ path, text }: SourceFile): string[] {
  if (!isSource(path)) return []
  const code = withoutComments(text)
  if (/^[ \t]*export\s*\*/m.test(code)) return [`${path}: export * passes on names that nobody chose`]
  const reExport = /^[ \t]*export\s+(?:type\s+)?\{[^}]*\}\s*from\s*['"][^'"]+['"];?/gm
  const without = code.replaceAll(reExport, '').replaceAll(/^[ \t]*import\b[^'"]*['"][^'"]+['"];?/gm, '')
  return without !== code && reExport.test(code) && without.trim() === ''
    ? [`${path}: is a barrel; packages expose subpaths`]
    : []
}

// In two pieces, so that this file does not name what it forbids.
const PLACES = [
  ['/wo', 'rk/main'],
  ['/wo', 'rk/shared'],
  ['/ro', 'ot/'],
  ['artifact', 'registry'],
  ['art', 'ifactory'],
]
const MACHINE = new RegExp(PLACES.map((pieces) => `(?<![\\w$}.*-])${pieces.join('')}`).join('|'), 'i')

/** Paths and hosts of whoever's machine a file was written on. */
export function machineProblems({ path, text }: SourceFile): string[] {
  return text.split('\n').flatMap((line, index) => {
    const found = MACHINE.exec(line)
    return found === null ? [] : [`${path}:${index + 1}: names a machine (${found[0]})`]
  })
}

/** Dependencies that are not pinned: the same checkout must always install the same thing. */
export function versionProblems({ path, text }: SourceFile): string[] {
  if (!path.endsWith('package.json')) return []
  const manifest = JSON.parse(text) as Record<string, Record<string, string> | undefined>
  return ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'].flatMap((kind) =>
    Object.entries(manifest[kind] ?? {})
      .filter(([, version]) => !/^(\d+\.\d+\.\d+(-[\w.]+)?|catalog:|workspace:\*)$/.test(version))
      .map(([name, version]) => `${path}: ${name} is ${version}, which is not one exact version`),
  )
}

export const RULES = [
  directionProblems,
  nodeEntryProblems,
  vendorProblems,
  environmentProblems,
  barrelProblems,
  machineProblems,
  versionProblems,
]
