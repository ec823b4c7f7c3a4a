/** The first bytes of a file that nothing else shows. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { Note, type ViewProps, Windowed } from '../parts.tsx'

const SHOWN = 16 * 1024
const IN_A_ROW = 16

export default function BytesView({ file }: ViewProps) {
  const bytes = file.head.subarray(0, SHOWN)
  return (
    <>
      <Note>
        {file.size > bytes.length
          ? `Showing the first ${formatBytes(bytes.length)} of ${formatBytes(file.size)} as bytes. Download the file to see all of it.`
          : 'Can’t preview this file, so its bytes are shown. Download it instead.'}
      </Note>
      <Windowed
        count={Math.ceil(bytes.length / IN_A_ROW)}
        rowHeight={20}
        label={`Bytes of ${file.path}`}
        className="code py-2 text-xs"
      >
        {(index) => {
          const row = [...bytes.subarray(index * IN_A_ROW, (index + 1) * IN_A_ROW)]
          const hex = row.map((byte) => byte.toString(16).padStart(2, '0'))
          return (
            <div className="flex w-max gap-[2ch] px-3 leading-5 whitespace-pre">
              <span className="text-faint">{(index * IN_A_ROW).toString(16).padStart(6, '0')}</span>
              <span className="w-[48ch]">{`${hex.slice(0, 8).join(' ')}  ${hex.slice(8).join(' ')}`}</span>
              <span className="text-muted">
                {row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('')}
              </span>
            </div>
          )
        }}
      </Windowed>
    </>
  )
}
