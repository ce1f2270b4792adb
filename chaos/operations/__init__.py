"""Operations that are under way while a fault breaks the service, each with its own promise."""
