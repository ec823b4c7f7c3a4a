/** Under which hosts previews are seen: each at an origin of its own, none of which is ours. */
import type { ServiceConfig } from '../config.ts'

const LOCAL_HOST = 'localhost'
/** Hosts at which the page is on the person's own machine, as every name below `localhost` is. */
const LOCAL_NAMES: ReadonlySet<string> = new Set([LOCAL_HOST, '127.0.0.1', '[::1]'])

export const PREVIEWS_OFF =
  'Previews need a host name of their own. Ask whoever runs this Sandlot to set SANDLOT_PREVIEW_HOST, ' +
  'or open Sandlot on its own machine as http://localhost.'

export interface PreviewPlaces {
  /**
   * The preview whose host this is, by the `Host` of a request. Null: a host below which previews
   * are, that is none of them. Undefined: no host of previews.
   */
  idOf(host: string | undefined): string | null | undefined
  /**
   * The origin of a preview, for a page that was requested at this `Host`. Undefined: there is
   * none.
   */
  originOf(id: string, host: string | undefined): string | undefined
}

/** `ID` is what `previewId` makes. */
const ID = /^[a-z2-7]{26}$/

export function previewPlaces({
  previewHost,
  publicUrl,
}: Pick<ServiceConfig, 'previewHost' | 'publicUrl'>): PreviewPlaces {
  const own = publicUrl === undefined ? undefined : new URL(publicUrl)
  const isLocal = own === undefined || LOCAL_NAMES.has(own.hostname)
  const base = previewHost ?? (isLocal ? LOCAL_HOST : undefined)
  const suffix = base === undefined ? undefined : `.${base.split(':')[0] ?? ''}`
  return {
    idOf(host) {
      const name = hostnameOf(host)
      if (suffix === undefined || name === undefined || name === own?.hostname) return undefined
      if (!name.endsWith(suffix)) return undefined
      const id = name.slice(0, -suffix.length)
      return ID.test(id) ? id : null
    },
    originOf(id, host) {
      if (previewHost !== undefined) {
        const port = previewHost.includes(':') || own === undefined || own.port === '' ? '' : `:${own.port}`
        return `${own?.protocol ?? 'http:'}//${id}.${previewHost}${port}`
      }
      const asked = host === undefined ? undefined : URL.parse(`http://${host}`)
      if (base === undefined || !asked || !LOCAL_NAMES.has(asked.hostname)) return undefined
      return `${own?.protocol ?? 'http:'}//${id}.${LOCAL_HOST}${asked.port === '' ? '' : `:${asked.port}`}`
    },
  }
}

function hostnameOf(host: string | undefined): string | undefined {
  const name = host === undefined ? undefined : URL.parse(`http://${host}`)?.hostname
  return name?.replace(/\.$/, '')
}
