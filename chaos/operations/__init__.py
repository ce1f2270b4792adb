"""Operations in progress while a fault breaks the service, each with its own promise."""
