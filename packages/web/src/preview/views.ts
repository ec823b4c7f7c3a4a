/** Which view shows a file of which kind. Each is loaded when the first such file is opened. */
import { type ComponentType, lazy, type LazyExoticComponent } from 'react'
import type { Kind } from './kinds.ts'
import type { ViewProps } from './parts.tsx'

interface View {
  label: string
  view: LazyExoticComponent<ComponentType<ViewProps>>
  /** It can be read as the text that it is, too. */
  source?: true
}

const media = lazy(() => import('./views/media-view.tsx'))
export const textView = lazy(() => import('./views/text-view.tsx'))

export const VIEWS: Record<Kind, View> = {
  image: { label: 'Image', view: lazy(() => import('./views/image-view.tsx')) },
  pdf: { label: 'PDF', view: lazy(() => import('./views/pdf-view.tsx')) },
  table: { label: 'Table', view: lazy(() => import('./views/table-view.tsx')), source: true },
  markdown: { label: 'Markdown', view: lazy(() => import('./views/markdown-view.tsx')), source: true },
  notebook: { label: 'Notebook', view: lazy(() => import('./views/notebook-view.tsx')), source: true },
  audio: { label: 'Audio', view: media },
  video: { label: 'Video', view: media },
  json: { label: 'JSON', view: lazy(() => import('./views/json-view.tsx')), source: true },
  patch: { label: 'Diff', view: lazy(() => import('./views/patch-view.tsx')), source: true },
  page: { label: 'HTML', view: lazy(() => import('./views/page-view.tsx')), source: true },
  code: { label: 'Code', view: textView },
  text: { label: 'Text', view: textView },
  bytes: { label: 'File', view: lazy(() => import('./views/bytes-view.tsx')) },
}
