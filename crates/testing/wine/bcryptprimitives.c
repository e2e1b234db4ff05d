/* Windows' source of random bytes as Rust's standard library asks for it, for Wine before 9.0, which has no such library. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T length)
{
	while (length > 0) {
		ULONG part = length < 65536 ? (ULONG)length : 65536;
		if (!SystemFunction036(bytes, part))
			return FALSE;
		bytes += part;
		length -= part;
	}
	return TRUE;
}
